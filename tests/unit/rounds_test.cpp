// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/rounds.h"

#include <gtest/gtest.h>

namespace mobius::engine {
namespace {

using Bulk = Rounds::Bulk;
using Place = Rounds::Place;

constexpr size_t kSizes[] = {1,    56,   64,     200,    512,    513,    2048,
                             7680, 8192, 10'240, 12'000, 15'361, 26'000, kBulkBytes};

TEST(Rounds, PlacesAreInside) {
  for (size_t turn = 0; turn < 20; ++turn) {
    for (const Bulk bulk : {Bulk::kNext, Bulk::kMet}) {
      for (const size_t bytes : kSizes) {
        const Place place = Rounds::place_of(turn, bulk, bytes);
        EXPECT_EQ(place.end - place.begin, bytes);
        EXPECT_EQ(place.begin % 64, 0u);
        EXPECT_LE(place.end, sizeof TeamMember::bulk);
      }
    }
  }
}

// A member that waits for the readers of the round before would miss them: they have posted there,
// and now wait for that member.
TEST(Rounds, NoPlaceIsThatOfTheRoundBefore) {
  for (size_t turn = 0; turn < 20; ++turn) {
    for (const Bulk before : {Bulk::kNext, Bulk::kMet}) {
      for (const Bulk after : {Bulk::kNext, Bulk::kMet}) {
        for (const size_t first : kSizes) {
          for (const size_t second : kSizes) {
            EXPECT_FALSE(Rounds::place_of(turn, before, first)
                             .overlaps(Rounds::place_of(turn + 1, after, second)))
                << turn << ": " << first << ", " << second;
          }
        }
      }
    }
  }
}

TEST(Rounds, WhoOnlyGivesHasAsManyPlacesAsFit) {
  const auto distinct = [](Bulk bulk, size_t bytes) {
    size_t turn = 1;
    while (!Rounds::place_of(0, bulk, bytes).overlaps(Rounds::place_of(turn, bulk, bytes))) ++turn;
    return turn;
  };
  EXPECT_EQ(distinct(Bulk::kNext, 100), kRoundLines);
  EXPECT_EQ(distinct(Bulk::kNext, 7680), kRoundLines);
  EXPECT_EQ(distinct(Bulk::kNext, 8192), 6u);
  EXPECT_EQ(distinct(Bulk::kNext, kBulkBytes), 2u);
  EXPECT_EQ(distinct(Bulk::kMet, 8192), 2u);
}

}  // namespace
}  // namespace mobius::engine
