// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string>

namespace mobius::job {

// Logs connections that were refused at a socket of this job. Outsiders can connect as often as
// they like, so only the first few are logged.
class RejectionLog {
 public:
  void report(pid_t pid, const char* what) { report("process " + std::to_string(pid), what); }
  void report(const std::string& who, const char* what);

 private:
  int reported_ = 0;
};

}  // namespace mobius::job
