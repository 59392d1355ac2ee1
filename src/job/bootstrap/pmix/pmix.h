// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Jobs that PMIx launchers start: Open MPI's and PRRTE's mpirun and prterun, Slurm's
// `srun --mpi=pmix`. libpmix is loaded only when such a launcher started this process. PMIx counts
// its users: that an MPI in the same process uses it as well, before, meanwhile or after, is fine.

#include <mobius/job.h>

#include <memory>
#include <vector>

#include "job/bootstrap/directory.h"

namespace mobius::job::pmix {

// Whether a PMIx launcher started this process, by its environment.
bool started_us(const char* const* environment);

// Whether this build and this machine can use PMIx; if not, mob_last_error() says what is missing.
bool is_usable();

// PMIx' facts about this process.
struct Whereabouts {
  mob_rank_t rank = 0;
  mob_rank_t size = 1;
  // Ranks that the launcher started on the same node, in ascending order.
  std::vector<mob_rank_t> neighbours;
};

// Connects to the PMIx server. A process has one directory at a time. Its fence() gives up after
// `limit_s` seconds. If it is destroyed without leave(), PMIx ends the job, because other processes
// may be waiting for this one. If the server goes away, the launcher has ended, and this process
// ends with a line on standard error unless `survive`. `others_left`: an MPI in this process has
// used PMIx and left it.
mob_status_t connect(unsigned limit_s, bool survive, bool others_left, Whereabouts* whereabouts,
                     std::unique_ptr<Directory>* directory);

// Ends the job with an exit code, if connect() succeeded in this process. Any thread, at any time.
void abort(int exit_code, const char* reason);

}  // namespace mobius::job::pmix
