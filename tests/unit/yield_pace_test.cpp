// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/yield_pace.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

TEST(YieldPace, OffersLateAtFirst) {
  const YieldPace pace;
  EXPECT_EQ(pace.looks(), YieldPace::kLate);
}

TEST(YieldPace, OffersSoonToWhoIsBriefAndOnlyWhileItIs) {
  YieldPace pace;
  pace.note(15'000);
  EXPECT_EQ(pace.looks(), YieldPace::kSoon);
  pace.note(500);  // nobody was there
  EXPECT_EQ(pace.looks(), YieldPace::kLate);
}

TEST(YieldPace, OffersLateToWhoKeepsTheProcessor) {
  YieldPace pace;
  pace.note(4'000'000);
  EXPECT_EQ(pace.looks(), YieldPace::kLate);
  pace.note(15'000);
  pace.note(4'000'000);
  EXPECT_EQ(pace.looks(), YieldPace::kLate);
}

TEST(YieldPace, AnOfferIsNoted) {
  YieldPace pace;
  pace.note(15'000);
  do pace.offer();
  while (pace.looks() == YieldPace::kSoon);  // until nobody took it
  EXPECT_EQ(pace.looks(), YieldPace::kLate);
}

}  // namespace
}  // namespace mobius::engine
