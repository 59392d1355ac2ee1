// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/duty.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

TEST(Duty, ServesAProgramThatComputes) {
  EXPECT_EQ(choose({}), Duty::kServe);
  EXPECT_EQ(choose({.waits = kManyWaits - 1}), Duty::kServe);
}

TEST(Duty, ServesWhileAThreadSleepsHoweverMuchTheProgramHasDone) {
  EXPECT_EQ(
      choose(
          {.has_sleepers = true, .has_polled = true, .has_started = true, .waits = 2 * kManyWaits}),
      Duty::kServe);
}

TEST(Duty, RestsWhereTheProgramServesWhateverItDoes) {
  for (const bool polled : {false, true}) {
    for (const bool sleeps : {false, true}) {
      EXPECT_EQ(choose({.rests = true, .is_polled = polled, .has_sleepers = sleeps}), Duty::kRest);
    }
  }
}

// The nap in a long wait may be longer than the one between short waits: the thread that waits ends
// it when it leaves.
TEST(Duty, TellsOneLongWaitFromManyShortOnes) {
  EXPECT_EQ(choose({.is_polled = true}), Duty::kNapInWait);
  EXPECT_EQ(choose({.is_polled = true, .waits = 1}), Duty::kNapBetweenWaits);
  EXPECT_EQ(choose({.is_polled = true, .has_started = true}), Duty::kNapInWait);
}

TEST(Duty, LeavesAProgramAloneThatComesBackToTheLibrary) {
  EXPECT_EQ(choose({.has_polled = true}), Duty::kNapForProgram);
  EXPECT_EQ(choose({.waits = kManyWaits}), Duty::kNapForProgram);
  EXPECT_EQ(choose({.has_started = true}), Duty::kNapAfterStart);
  // One that polls as well naps longer.
  EXPECT_EQ(choose({.has_polled = true, .has_started = true}), Duty::kNapForProgram);
}

}  // namespace
}  // namespace mobius::engine
