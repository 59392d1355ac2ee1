// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How the processes of a host find each other when no launcher of ours started them: the first to
// come takes the address that they all know, makes the segment, and gives it to the others with the
// messages of local_protocol.h. When all have it, nothing is left of the meeting.

#include <mobius/job.h>

#include <string>

namespace mobius::job {

// Blocks until all `size` processes called it with the same key, each with a rank of its own.
// `*segment` is owned by the caller. `*pid_is_shared`: the others know this process by the id that
// it knows itself by.
//
// A process that ends before it came is not noticed here: who launched it ends the others.
mob_status_t gather(const std::string& key, mob_rank_t rank, mob_rank_t size, int* segment,
                    bool* pid_is_shared);

}  // namespace mobius::job
