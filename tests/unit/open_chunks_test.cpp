// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/open_chunks.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace mobius::engine {
namespace {

constexpr uint64_t kChunks = 4096;

uint64_t borders_of(const std::vector<bool>& open) {
  uint64_t found = open.front() ? 1 : 0;
  for (size_t i = 1; i < open.size(); ++i) found += open[i] != open[i - 1] ? 1 : 0;
  return found + (open.back() ? 1 : 0);
}

TEST(OpenChunks, CountsBordersOfAnySequence) {
  OpenChunks chunks;
  ASSERT_TRUE(chunks.open(kChunks, UINT64_MAX));
  std::vector<bool> open(kChunks);
  std::mt19937 random(3);
  for (int step = 0; step < 3000; ++step) {
    const uint64_t first = random() % kChunks;
    const uint64_t count = 1 + random() % std::min<uint64_t>(40, kChunks - first);
    const bool accessible = random() % 2 == 0;
    chunks.set({first, count}, accessible);
    std::fill_n(open.begin() + static_cast<ptrdiff_t>(first), count, accessible);
    ASSERT_EQ(chunks.borders(), borders_of(open)) << step;
  }
}

TEST(OpenChunks, EverySecondChunkIsClosedUpToTheLimit) {
  OpenChunks chunks;
  ASSERT_TRUE(chunks.open(kChunks, 100));
  chunks.set({0, kChunks}, true);
  uint64_t closed = 0;
  for (uint64_t chunk = 1; chunk < kChunks; chunk += 2) {
    if (!chunks.may_deny({chunk, 1})) continue;
    chunks.set({chunk, 1}, false);
    ++closed;
  }
  EXPECT_GE(closed, 45u);
  EXPECT_LE(chunks.borders(), 100u);
  // A change that adds no border is always permitted: here the neighbour of a closed chunk is
  // closed.
  EXPECT_TRUE(chunks.may_deny({2, 1}));
}

TEST(OpenChunks, AtTheLimitChunksAreJoinedWithThoseNearby) {
  OpenChunks chunks;
  ASSERT_TRUE(chunks.open(kChunks, 4));
  chunks.set({10, 1}, true);
  chunks.set({20, 1}, true);
  const ChunkRun below = chunks.to_allow({15, 2});
  EXPECT_EQ(below.first, 15u);  // to the open chunk 20
  EXPECT_EQ(below.count, 5u);
  const ChunkRun above = chunks.to_allow({24, 1});
  EXPECT_EQ(above.first, 21u);
  EXPECT_EQ(above.count, 4u);
  const ChunkRun far_away = chunks.to_allow({4000, 1});
  EXPECT_EQ(far_away.first, 4000u);
  EXPECT_EQ(far_away.count, 1u);
}

TEST(OpenChunks, TheLimitLeavesTheProgramMostMappings) {
  EXPECT_GT(most_borders(), 1000u);
  EXPECT_LT(most_borders(), 1'000'000'000u);
}

}  // namespace
}  // namespace mobius::engine
