// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective_ways.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

using Trial = CollectiveWays::Trial;

// Calls of `attached` and of `passed_on` nanoseconds until the trial is over; how many it took.
int run(Trial& trial, int64_t attached, int64_t passed_on) {
  int calls = 0;
  for (; !trial.is_over() && calls < 100; ++calls) {
    const bool attaches = trial.attaches();
    trial.add(attaches, attaches ? attached : passed_on);
  }
  return calls;
}

TEST(CollectiveWays, BothAreTriedAndTheFasterIsTaken) {
  Trial trial;
  EXPECT_TRUE(trial.attaches());
  EXPECT_EQ(run(trial, 100, 101), 6);
  EXPECT_TRUE(trial.attaches());
  Trial other;
  EXPECT_EQ(run(other, 101, 100), 6);
  EXPECT_FALSE(other.attaches());
}

TEST(CollectiveWays, TheLeastOfEachCounts) {
  Trial trial;
  for (const int64_t ns : {900, 100, 900}) trial.add(true, ns);
  for (const int64_t ns : {200, 150, 200}) trial.add(false, ns);
  ASSERT_TRUE(trial.is_over());
  EXPECT_TRUE(trial.attaches());
}

// A call that could not be made the one way says nothing: the same way has its turn again.
TEST(CollectiveWays, TheTurnStaysWhereNothingWasAdded) {
  Trial trial;
  trial.add(true, 100);
  EXPECT_FALSE(trial.attaches());
  EXPECT_FALSE(trial.attaches());
  trial.add(false, 100);
  EXPECT_TRUE(trial.attaches());
  EXPECT_FALSE(trial.is_over());
}

}  // namespace
}  // namespace mobius::engine
