// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of a communicator as a team of Möbius. The first window over a communicator makes
// the team, and the communicator keeps it as an attribute: later windows need no exchange of the
// MPI. The team is freed when the communicator and the last window over it are. Where several
// threads may call the MPI each window has a team of its own: two threads may free or fence two
// windows at once, in any order, and a team allows one collective call at a time.

#include <mobius/mobius.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "binding/abi.h"
#include "windows/spares.h"

namespace mobius::mpi {

struct Members {
  std::vector<mob_rank_t> ranks;  // in the job
  mob_team_t team = MOB_TEAM_NONE;
  int windows = 0;       // that are live or being made
  bool is_kept = false;  // by a communicator
  // The same at all members and different from that of any other team: its first member, and a
  // number that this gave.
  std::pair<mob_rank_t, uint64_t> name{};
  std::vector<Spare> spares{};
};

// Those that a communicator keeps; null if it keeps none. All its processes get the same answer.
Members* kept_members(MPI_Comm comm);
// From here on the communicator keeps them.
void keep_members(MPI_Comm comm, Members* members);
// A window over them is freed, or was not made after all. Collective over them.
void leave_members(Members* members);
// Frees the spares of all communicators, in the same order everywhere. Collective over the job.
void free_all_spares();

}  // namespace mobius::mpi
