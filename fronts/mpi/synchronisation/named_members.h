// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The members of a window that a group of the program names. Programs pass the same group again and
// again to MPI_Win_post() and MPI_Win_start(), and four calls of the MPI take longer than the epoch
// itself: a window keeps the members of the last group until the program frees a group, as its
// handle may then name another one.

#include <mobius/job.h>

#include <cstdint>
#include <vector>

#include "binding/abi.h"

namespace mobius::mpi {

struct Window;

struct NamedMembers {
  std::vector<int> places;        // their ranks in the window …
  std::vector<mob_rank_t> ranks;  // … and in the job
  uintptr_t group = 0;            // number_of() the group
  uint64_t frees = 0;             // groups that the program had freed; 0: nothing is known
};

// False, with nothing kept, if the group has a process that is no member.
bool find_members(const Window& window, MPI_Group group, NamedMembers* members);

}  // namespace mobius::mpi
