// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Processes that the PMIx server of this one's node has its launcher start. PRRTE's and Open MPI's
// servers do, Slurm's does not.

#include <pmix.h>

#include <memory>
#include <string>
#include <string_view>

#include "job/bootstrap/launched_job.h"
#include "job/bootstrap/pmix/pmix_library.h"

namespace mobius::job::pmix {

// As Directory::launch() and Directory::parent() for the process `self`.
mob_status_t launch(const Library& library, const pmix_proc_t& self, const LaunchOrder& order,
                    std::string_view parent, std::unique_ptr<LaunchedJob>* launched);
std::string find_parent(const Library& library, const pmix_proc_t& self, std::string_view text,
                        std::unique_ptr<JobTie>* tie);

}  // namespace mobius::job::pmix
