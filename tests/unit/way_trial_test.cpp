// SPDX-License-Identifier: BSD-3-Clause
#include "engine/way_trial.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

// Times of `first` and of `second` nanoseconds until the trial is over; how many.
int run(WayTrial& trial, int64_t first, int64_t second) {
  int times = 0;
  for (; !trial.is_over() && times < 100; ++times) {
    const bool takes_first = trial.takes_first();
    trial.add(takes_first, takes_first ? first : second);
  }
  return times;
}

TEST(WayTrial, BothAreTriedAndTheFasterIsTaken) {
  WayTrial trial;
  EXPECT_TRUE(trial.takes_first());
  EXPECT_EQ(run(trial, 100, 101), 6);
  EXPECT_TRUE(trial.takes_first());
  WayTrial other;
  EXPECT_EQ(run(other, 101, 100), 6);
  EXPECT_FALSE(other.takes_first());
}

TEST(WayTrial, TheLeastOfEachCounts) {
  WayTrial trial;
  for (const int64_t ns : {900, 100, 900}) trial.add(true, ns);
  for (const int64_t ns : {200, 150, 200}) trial.add(false, ns);
  ASSERT_TRUE(trial.is_over());
  EXPECT_TRUE(trial.takes_first());
}

// What could not be done the one way says nothing: the same way has its turn again.
TEST(WayTrial, TheTurnStaysWhereNothingWasAdded) {
  WayTrial trial;
  trial.add(true, 100);
  EXPECT_FALSE(trial.takes_first());
  EXPECT_FALSE(trial.takes_first());
  trial.add(false, 100);
  EXPECT_TRUE(trial.takes_first());
  EXPECT_FALSE(trial.is_over());
}

TEST(WayTrial, WhatEndsLateChangesNothing) {
  WayTrial trial;
  run(trial, 100, 200);
  trial.add(false, 1);
  EXPECT_TRUE(trial.takes_first());
}

}  // namespace
}  // namespace mobius::engine
