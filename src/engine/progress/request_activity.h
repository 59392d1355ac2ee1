// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether local peers have lately asked this process for what a waiting thread does for them: run
// handlers of messages, put and get in its exposed memory. Looking for such requests, and
// announcing that one looks, costs more than one cross-core cache miss, so a wait begins without it
// while no requests come. The next request is then served as if the process computed, by the
// progress thread or the kernel, and from then on waits look for requests again.
//
// Requests of other hosts do not count: they take far longer than a wait goes without a look.

#include <atomic>
#include <cstdint>

namespace mobius::engine {

class RequestActivity {
 public:
  // A request came. Any thread.
  void note() { waits_since_.store(0, std::memory_order_relaxed); }

  // A wait of the program ended. Counts of two threads may fall into one; that changes nothing.
  void note_wait() {
    const uint32_t waits = waits_since_.load(std::memory_order_relaxed);
    if (waits < kWaitsToForget) waits_since_.store(waits + 1, std::memory_order_relaxed);
  }

  bool is_recent() const { return waits_since_.load(std::memory_order_relaxed) < kWaitsToForget; }

 private:
  // Waking the progress thread costs as much as looking for requests in so many waits (5 to 25 µs
  // against 0.06 to 0.18 µs each), so this rule at most doubles the cost of any pattern of
  // requests.
  static constexpr uint32_t kWaitsToForget = 128;

  std::atomic<uint32_t> waits_since_ = 0;
};

}  // namespace mobius::engine
