// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/directory.h"

#include <sys/utsname.h>

#include "base/log.h"
#include "base/status.h"

namespace mobius::job {

mob_status_t Directory::make_room(mob_rank_t, mob_rank_t) {
  return base::fail(MOB_ERR_STATE, "this job on several hosts cannot get more processes");
}

mob_status_t Directory::launch(const LaunchOrder&, std::string_view,
                               std::unique_ptr<LaunchedJob>*) {
  return base::fail(MOB_ERR_STATE, "the launcher of this job starts no processes for it");
}

void report_end_of_job() {
  utsname host = {};
  uname(&host);
  base::log(base::LogLevel::kError, "the job ends because mob_init() failed on host %s: %s",
            host.nodename, mob_last_error());
}

}  // namespace mobius::job
