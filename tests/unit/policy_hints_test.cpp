// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler/policy_hints.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

using schedule::Policy;

// Two allocations, of which only the addresses count.
const int first_allocation = 0;
const int second_allocation = 0;

TEST(PolicyHints, HoldForTheRangesOfAnAllocationAlone) {
  PolicyHints hints;
  EXPECT_FALSE(hints.any());
  // Ranges may come in any order of ranks.
  EXPECT_TRUE(hints.set(&first_allocation, {{5, 1000, 2000}, {2, 3000, 3500}}, Policy::kFifo));
  EXPECT_TRUE(hints.any());
  EXPECT_EQ(hints.find(5, 1000), Policy::kFifo);
  EXPECT_EQ(hints.find(5, 1999), Policy::kFifo);
  EXPECT_EQ(hints.find(2, 3200), Policy::kFifo);
  EXPECT_EQ(hints.find(5, 999), std::nullopt);
  EXPECT_EQ(hints.find(5, 2000), std::nullopt);
  EXPECT_EQ(hints.find(2, 1500), std::nullopt);
  EXPECT_EQ(hints.find(3, 1500), std::nullopt);
}

TEST(PolicyHints, SayHowFarAnAnswerGoes) {
  PolicyHints hints;
  EXPECT_EQ(hints.around(1, 500).begin, 0u);
  hints.set(&first_allocation, {{1, 1000, 2000}}, Policy::kFifo);
  hints.set(&second_allocation, {{1, 4000, 5000}}, Policy::kAggregate);
  const PolicyHints::Around inside = hints.around(1, 1500);
  EXPECT_EQ(inside.begin, 1000u);
  EXPECT_EQ(inside.bytes, 1000u);
  const PolicyHints::Around between = hints.around(1, 3000);
  EXPECT_EQ(between.begin, 2000u);
  EXPECT_EQ(between.bytes, 2000u);
}

TEST(PolicyHints, AreReplacedAndForgotten) {
  PolicyHints hints;
  EXPECT_FALSE(hints.set(&first_allocation, {}, std::nullopt));
  hints.set(&first_allocation, {{1, 1000, 2000}}, Policy::kFifo);
  EXPECT_EQ(hints.find(1, 1500), Policy::kFifo);
  // This thread's cached answer is invalid after a change.
  EXPECT_TRUE(hints.set(&first_allocation, {{1, 1000, 2000}}, Policy::kAggregate));
  EXPECT_EQ(hints.find(1, 1500), Policy::kAggregate);
  EXPECT_FALSE(hints.set(&second_allocation, {}, std::nullopt));
  EXPECT_TRUE(hints.set(&first_allocation, {}, std::nullopt));
  EXPECT_EQ(hints.find(1, 1500), std::nullopt);
  EXPECT_FALSE(hints.any());
}

}  // namespace
}  // namespace mobius::engine
