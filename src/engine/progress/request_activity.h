// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether host-mates have lately asked this process for what it does for them while it waits: to
// run handlers of messages, or to put and get in its exposed memory. To look for that, and to tell
// others that one looks, takes as long as a cache line's way between two processors, and more: a
// wait begins without it while nobody asks. Who asks then is seen to as if the process computed, by
// a thread that sleeps or by the kernel, and from then on waits look again.
//
// Other hosts do not count: what comes from them takes far longer than a wait goes without a look.

#include <atomic>
#include <cstdint>

namespace mobius::engine {

class RequestActivity {
 public:
  // Something was asked for. Any thread.
  void note() { waits_since_.store(0, std::memory_order_relaxed); }

  // A wait of the program ended. Counts of two threads may fall into one; that changes nothing.
  void note_wait() {
    const uint32_t waits = waits_since_.load(std::memory_order_relaxed);
    if (waits < kWaitsToForget) waits_since_.store(waits + 1, std::memory_order_relaxed);
  }

  bool is_recent() const { return waits_since_.load(std::memory_order_relaxed) < kWaitsToForget; }

 private:
  // To wake a thread that sleeps costs as much as it takes to look in so many waits (5 to 25 µs,
  // 0.06 to 0.18 each): whoever asks, and how often, that at most doubles the costs.
  static constexpr uint32_t kWaitsToForget = 128;

  std::atomic<uint32_t> waits_since_ = 0;
};

}  // namespace mobius::engine
