// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>

namespace mobius::engine {

// Ends the job, with a line that says why: this process, rank `self`, was refused memory where
// nobody could be told of what is lost with it. `doing`, followed by `rank`, says what for.
[[noreturn]] void end_for_lack_of_memory(mob_rank_t self, const char* doing, mob_rank_t rank);

}  // namespace mobius::engine
