// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ending everything that a job started, daemons included.
//
// A child subreaper, as both processes of the launcher are, becomes the parent of every descendant
// whose own parent has ended, whatever session or process group it is in. So killing one's children
// until none is left reaches all descendants.

#include <sys/types.h>

#include <vector>

namespace mobius::launch {

void become_subreaper();

// A process and the descendants that can be found below it now.
std::vector<pid_t> with_descendants(pid_t pid);

// Kills and reaps the children of this process until none is left. SIGCHLD must be blocked. Returns
// those that still exist after some seconds: they belong to another user or are stuck in the
// kernel.
std::vector<pid_t> end_descendants();

}  // namespace mobius::launch
