// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// When a thread that waits for another host, and polls the network again and again, yields its
// processor. The process that is to answer may need this very processor, even if it belongs to
// another host, as on a test bed: the kernel can leave two spinning threads on one processor for
// seconds while another is idle. If the last yield was taken for a short time, as an answer takes,
// the next yield comes soon. A thread that computes keeps the processor for milliseconds, so a
// yield that took long is not repeated soon.

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "os/sync/futex.h"

namespace mobius::engine {

// Any thread.
class AdaptiveYield {
 public:
  // Yield after so many polls in vain, each a system call.
  uint32_t looks() const { return looks_.load(std::memory_order_relaxed); }

  void offer() {
    const uint64_t before = os::now_ns();
    sched_yield();
    note(os::now_ns() - before);
  }

  // Notes how long a yield took.
  void note(uint64_t ns) {
    const bool was_brief = ns >= kTakenNs && ns < kLongNs;
    looks_.store(was_brief ? kSoon : kLate, std::memory_order_relaxed);
  }

  static constexpr uint32_t kSoon = 2;
  static constexpr uint32_t kLate = 48;  // about as long as an answer takes

 private:
  static constexpr uint64_t kTakenNs = 4'000;
  static constexpr uint64_t kLongNs = 100'000;

  std::atomic<uint32_t> looks_ = kLate;
};

}  // namespace mobius::engine
