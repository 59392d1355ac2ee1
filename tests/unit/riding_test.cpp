// SPDX-License-Identifier: BSD-3-Clause
#include "engine/riding.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

// A program that answers, then sends, some nanoseconds later. Returns how many answers went alone.
int exchange(Riding& riding, int times, uint64_t between) {
  int alone = 0;
  for (int i = 0; i < times; ++i) {
    const bool held = riding.waits();
    const uint64_t now = 1'000'000 + static_cast<uint64_t>(i) * 100'000;
    if (!held) {
      riding.note_alone(now);
      ++alone;
    }
    riding.note_own(now + between, held);
  }
  return alone;
}

TEST(Riding, FirstAnswersGoAtOnce) {
  Riding riding;
  EXPECT_FALSE(riding.waits());
}

TEST(Riding, AnswersOfWhoAlwaysSendsNextWait) {
  Riding riding;
  EXPECT_EQ(exchange(riding, 100, 500), 3);
  EXPECT_TRUE(riding.waits());
}

TEST(Riding, AnswersOfWhoSendsLateGoAtOnce) {
  Riding riding;
  EXPECT_EQ(exchange(riding, 100, 50'000), 100);
}

TEST(Riding, AnswersThatThePeerNeedsFirstGoAtOnce) {
  Riding riding;
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(riding.waits());
    riding.note_alone(1'000 + static_cast<uint64_t>(i));
    riding.note_heard();
    riding.note_own(1'001 + static_cast<uint64_t>(i), false);
  }
}

TEST(Riding, WhoWasHeardOfEndsTheWaiting) {
  Riding riding;
  exchange(riding, 2, 500);  // one more would do
  riding.note_alone(5'000'000);
  riding.note_heard();
  EXPECT_EQ(exchange(riding, 10, 500), 3);
}

// What waited in vain costs ever more trust, until it is earned anew.
TEST(Riding, WaitingInVainMakesItRarer) {
  Riding riding;
  exchange(riding, 10, 500);
  for (const int needed : {6, 12, 24, 48, 96}) {
    ASSERT_TRUE(riding.waits());
    riding.note_missed();
    EXPECT_EQ(exchange(riding, needed, 500), needed);
  }
  ASSERT_TRUE(riding.waits());
  riding.note_missed();
  EXPECT_EQ(exchange(riding, 20, 500), 6);
}

}  // namespace
}  // namespace mobius::engine
