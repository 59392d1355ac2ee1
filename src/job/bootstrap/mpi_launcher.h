// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Rank and size as the launcher of an MPI library (Open MPI's and PRRTE's mpirun, the mpiexec of
// MPICH and its descendants) passes them to a process. They are read from the environment, so the
// program need not use that MPI, or any.

#include <mobius/job.h>

#include "job/bootstrap/proof.h"

namespace mobius::job {

struct MpiLaunch {
  mob_rank_t rank = 0;
  mob_rank_t size = 0;
  // The same in all processes of this launch on this host and in no other. Made from the launcher's
  // process, from bytes of it that only processes of the same user can read, and from what the
  // launcher hands on. Other users can guess it only where the system places processes at fixed
  // addresses (kernel.randomize_va_space=0) or hides the launcher.
  Secret secret{};
};

// Looks for such a launcher. `*found` becomes false if there is none. Fails if the variables
// contradict each other, or if the launcher started processes on other hosts, too.
mob_status_t find_mpi_launch(const char* const* environment, MpiLaunch* launch, bool* found);

}  // namespace mobius::job
