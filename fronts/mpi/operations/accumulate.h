// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Accumulates on elements that Möbius has no operation for (long double, pairs, elements that are
// not aligned): the target's are fetched, combined by the MPI, and put back, under a lock that all
// such accumulates of the window take.

#include "operations/transfer.h"

namespace mobius::mpi {

// Copies as many bytes as both have, in order.
void copy_runs(const Runs& to, const Runs& from);

struct LockedUpdate {
  const Element& element;
  MPI_Op op;
  const Window& window;
  const Target& target;
  const Runs& remote;
  const Runs* local;   // null: nothing is changed
  const Runs* result;  // null: nothing is fetched
};
mob_status_t update_locked(const LockedUpdate& update);

}  // namespace mobius::mpi
