// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// When a thread that waits for another host, and looks at the network again and again, offers its
// processor. Who is to answer may wait for it, also if it is of another host, as on a test bed:
// that the kernel sees two threads that spin on one, while another processor is idle, can last for
// seconds. Where the last offer was taken by somebody who was brief, as who answers is, the next
// comes soon. Somebody who computes keeps the processor for milliseconds: that is not repeated
// without need.

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "os/futex.h"

namespace mobius::engine {

// Any thread.
class AdaptiveYield {
 public:
  // After so many looks without anything, each a system call.
  uint32_t looks() const { return looks_.load(std::memory_order_relaxed); }

  void offer() {
    const uint64_t before = os::now_ns();
    sched_yield();
    note(os::now_ns() - before);
  }

  // How long an offer took.
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
