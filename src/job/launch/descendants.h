// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ending everything that a job started, daemons included.
//
// A process that set itself a child subreaper (both processes of the launcher are) becomes the
// parent of every descendant whose own parent ended, whatever sessions and process groups it made.
// So killing one's children until there are none reaches all descendants, each as it moves up.

#include <sys/types.h>

#include <vector>

namespace mobius::launch {

void become_subreaper();

// A process and the descendants that can be found below it now.
std::vector<pid_t> with_descendants(pid_t pid);

// Kills and reaps the children of this process until none is left. SIGCHLD must be blocked.
// Returns those that are still there after some seconds: of another user, or stuck in the kernel.
std::vector<pid_t> end_descendants();

}  // namespace mobius::launch
