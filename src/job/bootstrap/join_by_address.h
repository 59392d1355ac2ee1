// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Joins the processes of one host that know a common address and nothing else of each other: the
// first process binds the address, makes the segment and sends it to the others with the messages
// of local_protocol.h. The address is free again when all have joined.

#include <mobius/job.h>

#include "job/bootstrap/proof.h"

namespace mobius::job {

// The address is made from the secret. Processes of other users can take it first if they can guess
// the secret; then the next of several addresses is used.
struct JoinAddress {
  Secret secret;  // the same in all processes of the job, and in no other job
  mob_rank_t rank;
  mob_rank_t size;
};

// Blocks until all processes of the job have called it, each with its own rank. The caller owns
// `*segment`. `*pid_is_shared`: the other processes see this one under the process id that it has
// for itself.
//
// A process that dies before it calls this is not noticed here: its launcher ends the others.
mob_status_t join_by_address(const JoinAddress& job, int* segment, bool* pid_is_shared);

}  // namespace mobius::job
