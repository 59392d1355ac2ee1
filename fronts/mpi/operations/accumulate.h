// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Accumulates under a lock: on elements that Möbius has no operation for (long double, pairs,
// elements that are not aligned), and on memory that the kernel copies. The target's elements are
// fetched, combined by the MPI, and put back, under a lock that all such accumulates of the window
// take.

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

// The same for one element that Möbius knows, of a target with Target::is_copied.
struct LockedWord {
  const Element& element;
  const Target& target;
  char* address;
  void* result;
};
mob_status_t fetch_and_op_locked(const LockedWord& word, const void* origin, MPI_Op op);
mob_status_t compare_and_swap_locked(const LockedWord& word, const void* origin,
                                     const void* compare);

}  // namespace mobius::mpi
