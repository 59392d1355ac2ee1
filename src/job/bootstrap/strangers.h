// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

namespace mobius::job {

// Says in the log who was turned away from a socket of this job. A stranger can connect as often as
// it likes: it shall not fill the log.
class Strangers {
 public:
  void report(pid_t pid, const char* what);

 private:
  int reported_ = 0;
};

}  // namespace mobius::job
