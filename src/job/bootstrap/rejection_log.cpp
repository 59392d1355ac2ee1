// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/rejection_log.h"

#include "base/log.h"

namespace mobius::job {

void RejectionLog::report(pid_t pid, const char* what) {
  constexpr int kMostReports = 8;
  if (reported_ == kMostReports) return;
  ++reported_;
  base::log(base::LogLevel::kWarn,
            "turned away process %d, which connected to this job's socket and %s%s", pid, what,
            reported_ == kMostReports ? "; more of this is not reported" : "");
}

}  // namespace mobius::job
