// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/ack_piggyback.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

// A program that answers, then sends some nanoseconds later. Returns the number of answers that
// went alone.
int exchange(AckPiggyback& riding, int times, uint64_t between) {
  int alone = 0;
  for (int i = 0; i < times; ++i) {
    const bool held = riding.waits();
    const uint64_t now = 1'000'000 + static_cast<uint64_t>(i) * 100'000;
    if (held) {
      riding.note_rode();
    } else {
      riding.note_alone(now);
      ++alone;
      riding.note_own(now + between);
    }
  }
  return alone;
}

TEST(AckPiggyback, FirstAnswersGoAtOnce) {
  AckPiggyback riding;
  EXPECT_FALSE(riding.waits());
}

TEST(AckPiggyback, AnswersWaitForAProcessThatAlwaysSendsNext) {
  AckPiggyback riding;
  EXPECT_EQ(exchange(riding, 100, 500), 3);
  EXPECT_TRUE(riding.waits());
}

TEST(AckPiggyback, AnswersGoAtOnceFromALateSender) {
  AckPiggyback riding;
  EXPECT_EQ(exchange(riding, 100, 50'000), 100);
}

TEST(AckPiggyback, AnswersThatThePeerNeedsFirstGoAtOnce) {
  AckPiggyback riding;
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(riding.waits());
    riding.note_alone(1'000 + static_cast<uint64_t>(i));
    riding.note_heard();
    riding.note_own(1'001 + static_cast<uint64_t>(i));
  }
}

TEST(AckPiggyback, AMessageEndsTheWaiting) {
  AckPiggyback riding;
  exchange(riding, 2, 500);  // one more would suffice
  riding.note_alone(5'000'000);
  riding.note_heard();
  EXPECT_EQ(exchange(riding, 20, 500), 5);
  // However often that was: none has waited in vain.
  AckPiggyback other;
  for (int i = 0; i < 100; ++i) {
    other.note_alone(5'000'000);
    other.note_heard();
    other.waits();
  }
  EXPECT_EQ(exchange(other, 20, 500), 6);
}

// A program that behaves the same for long, then differs for a moment, stays trusted.
TEST(AckPiggyback, WaitingInVainOnceInAWhileChangesNothing) {
  AckPiggyback riding;
  EXPECT_EQ(exchange(riding, 40, 500), 3);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(riding.waits());
    riding.note_missed(10'000);
    EXPECT_EQ(exchange(riding, 10, 500), 0);
  }
}

// Answers that wait in vain often, or for long, cost ever more trust, until it is earned again.
TEST(AckPiggyback, WaitingInVainMakesItRarer) {
  for (const uint64_t waited_ns : {5'000, 20'000, 1'000'000}) {
    // Answers that share a message, until one waits in vain.
    const uint64_t between = 2 + waited_ns / 10'000;
    AckPiggyback riding;
    int held = 0;
    for (int round = 0; round < 1000; ++round) {
      if (riding.waits()) {
        riding.note_missed(waited_ns);
        ++held;
      }
      exchange(riding, static_cast<int>(between / 2), 500);
    }
    EXPECT_LE(held, 1000 / 2) << waited_ns;
  }
  AckPiggyback riding;
  for (int i = 0; i < 5; ++i) riding.note_missed(1'000'000);
  EXPECT_EQ(exchange(riding, 200, 500), 96);
}

}  // namespace
}  // namespace mobius::engine
