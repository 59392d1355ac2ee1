// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>

#include <new>

#include "base/status.h"

namespace mobius::engine {

// Runs a function that may allocate and returns its status, or MOB_ERR_MEMORY where memory was
// refused: no exception crosses the C ABI, or leaves a collective step in which others wait. Errors
// name the call.
template <typename Call>
mob_status_t without_exceptions(const char* name, Call call) {
  try {
    return base::told_by(name, call());
  } catch (const std::bad_alloc&) {
    return base::fail(MOB_ERR_MEMORY, "%s: this process has no memory left", name);
  }
}

// Ends the job with a line that says why: this process, rank `self`, was refused memory at a point
// where the loss could not be reported to anybody. `doing`, followed by `rank`, says what the
// memory was for.
[[noreturn]] void end_for_lack_of_memory(mob_rank_t self, const char* doing, mob_rank_t rank);

}  // namespace mobius::engine
