// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// `mobius run`. The library behind it is not part of libmobius.
//
// Two processes: the front, which the user sees and signals, and its child, the worker
// (Supervisor), which starts the ranks and is their parent. Each notices the end of the other and
// then ends whatever the job started: the worker is told by the end of the pipe from the front; the
// front, by the kernel that its child ended, and being a subreaper it inherits what the worker left
// behind. With one process alone, killing it would leave the ranks' descendants; a watcher beside
// it would not be their ancestor, and could not find them. Only who kills both at once leaves
// something: the ranks still end (PR_SET_PDEATHSIG), processes that they started themselves do not.

#include "job/launch/options.h"

namespace mobius::launch {

// Runs the job and returns its exit code. Closes inherited descriptors above 2, and blocks
// signals: call it as the last thing the process does, while it has one thread.
int run(const RunOptions& options);

}  // namespace mobius::launch
