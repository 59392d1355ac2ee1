// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>

namespace mobius::os {

// During its lifetime, no other thread of the process runs: each waits in a handler of SIGURG, a
// signal that does nothing by default, and then continues as after any other signal. A thread that
// blocks SIGURG cannot be stopped. The caller must take no lock and allocate no memory meanwhile,
// because a stopped thread may hold the lock that this needs.
class StoppedThreads {
 public:
  StoppedThreads();
  ~StoppedThreads();
  StoppedThreads(const StoppedThreads&) = delete;
  StoppedThreads& operator=(const StoppedThreads&) = delete;

  // The number of threads that could not be stopped.
  int left() const { return left_; }
  // errno if it is not known which threads there are, because they could not be listed; else 0.
  int error() const { return error_; }

 private:
  std::unique_lock<std::mutex> one_at_a_time_;
  int left_ = 0;
  int error_ = 0;
};

}  // namespace mobius::os
