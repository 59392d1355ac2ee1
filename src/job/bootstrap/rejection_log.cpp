// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/rejection_log.h"

#include "base/log.h"

namespace mobius::job {

void RejectionLog::report(const std::string& who, const char* what) {
  constexpr int kMostReports = 8;
  if (reported_ == kMostReports) return;
  ++reported_;
  base::log(base::LogLevel::kWarn, "turned away %s, which connected to this job's socket and %s%s",
            who.c_str(), what, reported_ == kMostReports ? "; more of this is not reported" : "");
}

}  // namespace mobius::job
