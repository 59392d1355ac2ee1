// SPDX-License-Identifier: BSD-3-Clause
#include "os/waiter.h"

#include <gtest/gtest.h>

#include <thread>

namespace mobius::os {
namespace {

class Waiter : public testing::TestWithParam<WaitPolicy> {};

// Two threads hand a counter to and fro; a lost wake-up would hang.
TEST_P(Waiter, NoWakeUpIsLost) {
  constexpr uint32_t kTurns = 20'000;
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
  const auto play = [&](uint32_t parity) {
    for (uint32_t turn = parity; turn < kTurns; turn += 2) {
      while (true) {
        const uint32_t seen = word.load(std::memory_order_acquire);
        if (seen == turn) break;
        wait_while_equal(word, seen, sleepers, GetParam());
      }
      word.store(turn + 1, std::memory_order_release);
      wake_all(word, sleepers);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(word.load(), kTurns);
  EXPECT_EQ(sleepers.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, Waiter,
                         testing::Values(WaitPolicy{.spin_ns = 0, .yields = 0},
                                         WaitPolicy{.spin_ns = 0, .yields = 4},
                                         WaitPolicy{.spin_ns = 20'000, .yields = 16}));

}  // namespace
}  // namespace mobius::os
