// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/request_activity.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

// The number of waits, at most `most`, until the demand is forgotten.
int waits_to_forget(RequestActivity& demand, int most) {
  int waits = 0;
  for (; demand.is_recent() && waits < most; ++waits) demand.note_wait();
  return waits;
}

TEST(Demand, IsForgottenAfterWaitsInWhichNobodyAsks) {
  RequestActivity demand;
  EXPECT_TRUE(demand.is_recent());  // until there is evidence
  const int waits = waits_to_forget(demand, 100'000);
  EXPECT_GT(waits, 1);
  EXPECT_FALSE(demand.is_recent());
  for (int i = 0; i < 3 * waits; ++i) demand.note_wait();
  EXPECT_FALSE(demand.is_recent());

  demand.note();
  EXPECT_EQ(waits_to_forget(demand, 100'000), waits);  // from the start, however long ago
}

TEST(Demand, IsRememberedWhileSomebodyAsksNowAndThen) {
  RequestActivity demand;
  const int waits = waits_to_forget(demand, 100'000);
  demand.note();
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < waits - 1; ++j) demand.note_wait();
    EXPECT_TRUE(demand.is_recent());
    demand.note();
  }
}

}  // namespace
}  // namespace mobius::engine
