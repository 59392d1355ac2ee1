// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Joins the processes of one host that know a common address and nothing else of each other: the
// first process binds the address, makes the segment and sends it to the others with the messages
// of local_protocol.h. The address is free again when all have joined.

#include <mobius/job.h>

#include <string>

namespace mobius::job {

// Blocks until all `size` processes have called it with the same key, each with its own rank.
// `*segment` is owned by the caller. `*pid_is_shared`: the other processes see this one under the
// process id that it has for itself.
//
// A process that dies before it calls this is not noticed here: its launcher ends the others.
mob_status_t join_by_address(const std::string& key, mob_rank_t rank, mob_rank_t size, int* segment,
                             bool* pid_is_shared);

}  // namespace mobius::job
