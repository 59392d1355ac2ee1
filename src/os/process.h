// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace mobius::os {

// When a process started, in clock ticks since the host did; 0 if there is no such process (any
// more), or if it could not be looked at: errno tells. Together with the pid it names a process for
// good.
uint64_t process_start_time(pid_t pid);

// The process that a process is a child of; 0 if there is none, or none that we can see.
pid_t process_parent(pid_t pid);

// The environment that a process was started with: "NAME=value", each with a 0 behind it. Empty if
// it is another user's, or gone.
std::string process_environment(pid_t pid);

// A process that may end at any time, watched through a pidfd: a pid that is used again is not
// taken for it.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch() { close(); }

  // Whether the process `pid` that started at `start_time` has ended. Opens the pidfd at the first
  // call; where the kernel has none (before 5.3) the start time alone decides. Who cannot look, for
  // lack of descriptors for instance, finds it alive. Allocates nothing. Not thread-safe.
  bool has_ended(pid_t pid, uint64_t start_time);

  void close();

 private:
  int descriptor_ = -1;
};

}  // namespace mobius::os
