// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// `mobius run`. The library behind it is not part of libmobius.
//
// There are two processes: the front, which the user sees and signals, and its child, the worker
// (Supervisor), which starts the ranks and is their parent. If one of them ends, the other ends
// everything that the job started. The worker notices the end of the front by the pipe between
// them. The front notices the end of the worker as its parent, and being a subreaper it becomes the
// parent of the worker's descendants. A single process could not do this: if it were killed, the
// descendants of the ranks would stay. If both are killed at once, the ranks still end
// (PR_SET_PDEATHSIG; behind a wrapper, UnixSocket::kill_on_close()), but processes that ranks have
// started stay.

#include "job/launch/options.h"

namespace mobius::launch {

// Runs the job and returns its exit code. Closes inherited descriptors above 2 and blocks signals,
// so call it as the last thing that the process does, while it has one thread.
int run(const RunOptions& options);

}  // namespace mobius::launch
