// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/adaptive_yield.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

TEST(AdaptiveYield, OffersLateAtFirst) {
  const AdaptiveYield pace;
  EXPECT_EQ(pace.looks(), AdaptiveYield::kLate);
}

TEST(AdaptiveYield, OffersSoonToABriefProcessAndOnlyWhileItIsBrief) {
  AdaptiveYield pace;
  pace.note(15'000);
  EXPECT_EQ(pace.looks(), AdaptiveYield::kSoon);
  pace.note(500);  // no other thread ran
  EXPECT_EQ(pace.looks(), AdaptiveYield::kLate);
}

TEST(AdaptiveYield, OffersLateToAProcessThatKeepsTheProcessor) {
  AdaptiveYield pace;
  pace.note(4'000'000);
  EXPECT_EQ(pace.looks(), AdaptiveYield::kLate);
  pace.note(15'000);
  pace.note(4'000'000);
  EXPECT_EQ(pace.looks(), AdaptiveYield::kLate);
}

TEST(AdaptiveYield, AnOfferIsNoted) {
  AdaptiveYield pace;
  pace.note(15'000);
  do pace.offer();
  while (pace.looks() == AdaptiveYield::kSoon);  // until no other thread ran
  EXPECT_EQ(pace.looks(), AdaptiveYield::kLate);
}

}  // namespace
}  // namespace mobius::engine
