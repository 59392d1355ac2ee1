// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Waiting for another process: spin briefly, yield, then sleep on a futex. With more processes than
// processors a spinning waiter keeps the one it waits for from running, so every wait ends asleep.

#include <atomic>
#include <cstdint>

namespace mobius::os {

struct WaitPolicy {
  uint64_t spin_ns = 0;
  uint64_t yields = 0;
};

// Returns once `word` no longer holds `value` (acquire). `word` and `sleepers` lie in memory shared
// with the process that calls wake_all() after changing the word. Any thread.
void wait_while_equal(const std::atomic<uint32_t>& word, uint32_t value,
                      std::atomic<uint32_t>& sleepers, const WaitPolicy& policy);

// Wakes every sleeper of `word`; costs a fence and a load when nobody sleeps. Call after the word
// was changed.
void wake_all(const std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers);

}  // namespace mobius::os
