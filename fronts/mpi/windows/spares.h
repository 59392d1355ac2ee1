// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Parts of freed windows that the next windows over the same communicator take: the carrier, which
// costs the MPI up to half a millisecond, the object for epochs, the locks, and the memory of an
// allocated window. All members keep the same spares in the same order, because they agree on each.
// A carrier that is kept gets the name and the error handler back that the MPI gave it. A carrier
// to which the program gave an info or an attribute is freed: these cannot be taken back.

#include <mobius/mobius.h>

#include <vector>

#include "binding/abi.h"

namespace mobius::mpi {

struct MemberLocks;
struct Members;
struct Window;

struct Spare {
  MPI_Win carrier{};
  mob_epoch_t epoch = nullptr;
  MemberLocks* own_locks = nullptr;
  std::vector<MemberLocks*> locks;  // of each member
  mob_mem_t memory = nullptr;  // zeros; for windows of `flavor` with these sizes, without an info
  int flavor = 0;
  std::vector<uint64_t> bytes;
};

// Instead of freeing a window's parts, keeps them, if all members can; its memory is left to the
// caller unless Window::memory is null afterwards. Collective over the window: no member looks at
// the memory of others from here on.
bool keep_as_spare(Window* window);

// Frees the spares of a communicator's members. Collective over them.
void free_spares(Members* members);
void free_spare(Spare* spare);

}  // namespace mobius::mpi
