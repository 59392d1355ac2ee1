// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>

namespace mobius::os {

// While it lives, no other thread of the process runs: each waits in a handler of SIGURG, a signal
// that does nothing by default, and goes on as after any other signal. A thread that blocks it
// cannot be stopped. Whoever stops others takes no lock meanwhile and allocates no memory, as one
// of them may hold what that needs.
class StoppedThreads {
 public:
  StoppedThreads();
  ~StoppedThreads();
  StoppedThreads(const StoppedThreads&) = delete;
  StoppedThreads& operator=(const StoppedThreads&) = delete;

  // How many threads could not be stopped.
  int left() const { return left_; }

 private:
  std::unique_lock<std::mutex> one_at_a_time_;
  int left_ = 0;
};

}  // namespace mobius::os
