// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/out_of_memory.h"

#include <unistd.h>

#include <cstdio>
#include <new>

#include "base/log.h"
#include "job/job.h"

namespace mobius::engine {

void end_for_lack_of_memory(mob_rank_t self, const char* doing, mob_rank_t rank) {
  char reason[160];
  std::snprintf(reason, sizeof reason, "rank %d has no memory left %s %d", self, doing, rank);
  base::log(base::LogLevel::kError, "%s; the job ends", reason);
  try {
    job::request_abort(environ, 1, reason);
  } catch (const std::bad_alloc&) {
    _exit(1);  // then the launcher sees a process that ends with an error
  }
  _exit(1);
}

}  // namespace mobius::engine
