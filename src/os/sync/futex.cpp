// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace mobius::os {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

timespec timespec_of(uint64_t ns) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(ns / kNsPerSecond);
  time.tv_nsec = static_cast<long>(ns % kNsPerSecond);
  return time;
}

}  // namespace

// Both are without FUTEX_PRIVATE: waiter and waker may be different processes.

bool futex_wait(const void* word, uint32_t value, uint64_t timeout_ns, uint32_t bits) {
  timespec deadline{};  // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC
  const timespec* limit = nullptr;
  if (timeout_ns != kNoTimeout) {
    deadline = timespec_of(now_ns() + timeout_ns);
    limit = &deadline;
  }
  const int saved = errno;
  const long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, limit, nullptr, bits);
  const bool timed_out = result != 0 && errno == ETIMEDOUT;
  errno = saved;
  return !timed_out;
}

void futex_wake(const void* word, int count, uint32_t bits) {
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET, count, nullptr, nullptr, bits);
  errno = saved;
}

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace mobius::os
