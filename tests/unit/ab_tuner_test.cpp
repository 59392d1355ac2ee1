// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/ab_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mobius::engine {
namespace {

// Adds times of `first` and `second` nanoseconds until one is not timed; returns their number.
int run(AbTuner& tuner, int64_t first, int64_t second) {
  int times = 0;
  for (; times < 100; ++times) {
    const bool takes_first = tuner.takes_first();
    if (!tuner.begins()) break;
    tuner.add(takes_first, takes_first ? first : second);
  }
  return times;
}

// The number of untimed uses until both ways are tried again; the first of those is timed.
int pause(AbTuner& tuner) {
  int times = 0;
  while (times < 10'000'000 && !tuner.begins()) ++times;
  return times;
}

TEST(AbTuner, BothAreTriedAndTheFasterIsTaken) {
  AbTuner tuner;
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_EQ(run(tuner, 100, 101), 6);
  EXPECT_TRUE(tuner.takes_first());
  AbTuner other;
  EXPECT_EQ(run(other, 101, 100), 6);
  EXPECT_FALSE(other.takes_first());
}

TEST(AbTuner, TheMiddleOneOfEachCounts) {
  int64_t times[] = {100, 150, 900};
  do {
    AbTuner tuner;
    for (const int64_t ns : times) tuner.add(true, ns);
    for (const int64_t ns : {80, 200, 160}) tuner.add(false, ns);
    EXPECT_TRUE(tuner.takes_first());
    AbTuner other;
    for (const int64_t ns : times) other.add(true, ns);
    for (const int64_t ns : {500, 140, 140}) other.add(false, ns);
    EXPECT_FALSE(other.takes_first());
  } while (std::next_permutation(std::begin(times), std::end(times)));
}

// A use that could not take its way says nothing: that way has its turn again.
TEST(AbTuner, TheTurnStaysWhereNothingWasAdded) {
  AbTuner tuner;
  tuner.add(true, 100);
  EXPECT_FALSE(tuner.takes_first());
  EXPECT_FALSE(tuner.takes_first());
  tuner.add(false, 100);
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_TRUE(tuner.begins());
}

TEST(AbTuner, ALateEndChangesNothing) {
  AbTuner tuner;
  run(tuner, 100, 200);
  tuner.add(false, 1);
  EXPECT_TRUE(tuner.takes_first());
}

// The first times differed from those that follow.
TEST(AbTuner, BothAreTriedAgainEverMoreSeldom) {
  AbTuner tuner;
  run(tuner, 300, 200);
  EXPECT_FALSE(tuner.takes_first());
  EXPECT_EQ(pause(tuner), 15);  // run() used one
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_EQ(run(tuner, 100, 200), 6);
  EXPECT_TRUE(tuner.takes_first());
  for (const int expected : {31, 63, 127, 255, 511, 899, 899}) {
    EXPECT_EQ(pause(tuner), expected);
    EXPECT_EQ(run(tuner, 100, 200), 6);
  }
}

TEST(AbTuner, ACostlierPathIsTriedMoreSeldom) {
  const auto longest_pause = [](int64_t first, int64_t second) {
    AbTuner tuner;
    int longest = 0;
    for (int i = 0; i < 20; ++i) {
      run(tuner, first, second);
      longest = std::max(longest, pause(tuner));
    }
    return longest;
  };
  EXPECT_EQ(longest_pause(1000, 1010), 255);
  EXPECT_EQ(longest_pause(180, 100), 719);
  EXPECT_EQ(longest_pause(900, 100), 2399);  // once, not three times
  EXPECT_EQ(longest_pause(1, 10'000'000), (1 << 20) - 1);
}

// One way takes more than twice as long.
TEST(AbTuner, AClearResultIsNotTriedThreeTimes) {
  AbTuner tuner;
  EXPECT_EQ(run(tuner, 100, 201), 4);
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_EQ(pause(tuner), 15);
  EXPECT_EQ(run(tuner, 100, 201), 2);  // as before
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_EQ(pause(tuner), 63);
  EXPECT_EQ(run(tuner, 100, 200), 6);  // not so clear
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_GT(pause(tuner), 63);
  EXPECT_EQ(run(tuner, 300, 100), 4);  // not as before
  EXPECT_FALSE(tuner.takes_first());
}

// The first time differed from the others.
TEST(AbTuner, AResultThatIsClearOnceIsTriedAgain) {
  AbTuner tuner;
  tuner.add(true, 1000);
  tuner.add(false, 100);
  EXPECT_TRUE(tuner.takes_first());
  tuner.add(true, 90);
  tuner.add(false, 100);
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_TRUE(tuner.begins());
  tuner.add(true, 90);
  tuner.add(false, 100);
  EXPECT_TRUE(tuner.takes_first());
  EXPECT_FALSE(tuner.begins());
}

TEST(AbTuner, ThatTheOtherWayHasBecomeFasterIsNoticed) {
  AbTuner tuner;
  const auto second_of = [&tuner](int times, int64_t first, int64_t second) {
    int taken = 0;
    for (int i = 0; i < times; ++i) {
      const bool takes_first = tuner.takes_first();
      taken += takes_first ? 0 : 1;
      if (tuner.begins()) tuner.add(takes_first, takes_first ? first : second);
    }
    return taken;
  };
  EXPECT_LT(second_of(100'000, 4000, 5000), 5000);
  EXPECT_GT(second_of(1000, 4000, 1300), 700);
}

// Each way leaves the state so that the other one is slow.
TEST(AbTuner, InRowsTheFirstOfEachDoesNotCount) {
  AbTuner tuner(AbTuner::Order::kInRows);
  bool before = true;
  int changes = 0;
  int times = 0;
  for (; times < 100; ++times) {
    const bool takes_first = tuner.takes_first();
    if (!tuner.begins()) break;
    const bool is_change = times != 0 && takes_first != before;
    changes += is_change ? 1 : 0;
    // The second is faster, unless it follows the first.
    tuner.add(takes_first, times == 0 || is_change ? 9000 : takes_first ? 500 : 400);
    before = takes_first;
  }
  EXPECT_EQ(times, 8);
  EXPECT_EQ(changes, 1);
  EXPECT_FALSE(tuner.takes_first());
}

}  // namespace
}  // namespace mobius::engine
