// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/range_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace mobius::engine {
namespace {

TEST(RangeAllocator, FitAndExhaustion) {
  RangeAllocator ranges(100);
  size_t a = 1;
  size_t b = 1;
  size_t c = 1;
  ASSERT_TRUE(ranges.allocate(60, 1, &a));
  ASSERT_TRUE(ranges.allocate(40, 1, &b));
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 60u);
  EXPECT_FALSE(ranges.allocate(1, 1, &c));
  EXPECT_EQ(c, 1u);
  ranges.release(a, 60);
  ASSERT_TRUE(ranges.allocate(10, 1, &c));
  EXPECT_EQ(c, 0u);
}

TEST(RangeAllocator, TakesTheShortestPieceThatFits) {
  RangeAllocator ranges(100);
  size_t offset = 0;
  for (const size_t bytes : {30u, 5u, 10u, 5u, 50u})
    ASSERT_TRUE(ranges.allocate(bytes, 1, &offset));
  ranges.release(0, 30);
  ranges.release(35, 10);
  ASSERT_TRUE(ranges.allocate(9, 1, &offset));
  EXPECT_EQ(offset, 35u);
}

TEST(RangeAllocator, AlignmentSkipsAndKeepsWhatItSkipped) {
  RangeAllocator ranges(100);
  size_t offset = 0;
  ASSERT_TRUE(ranges.allocate(3, 1, &offset));
  ASSERT_TRUE(ranges.allocate(16, 32, &offset));
  EXPECT_EQ(offset, 32u);
  ASSERT_TRUE(ranges.allocate(29, 1, &offset));
  EXPECT_EQ(offset, 3u);
  EXPECT_FALSE(ranges.allocate(40, 64, &offset));
  ASSERT_TRUE(ranges.allocate(36, 64, &offset));
  EXPECT_EQ(offset, 64u);
}

TEST(RangeAllocator, RangesCanBeAddedAndTakenOut) {
  RangeAllocator ranges;
  ranges.add(1000, 10);
  size_t offset = 0;
  ASSERT_TRUE(ranges.allocate(4, 1, &offset));
  EXPECT_EQ(offset, 1000u);
  const Range piece = ranges.release(1000, 4);
  EXPECT_EQ(piece.offset, 1000u);
  EXPECT_EQ(piece.bytes, 10u);
  ranges.remove(piece);
  EXPECT_FALSE(ranges.allocate(1, 1, &offset));
}

TEST(RangeAllocator, EmptyHasNothingToGive) {
  RangeAllocator ranges;
  size_t offset = 0;
  EXPECT_FALSE(ranges.allocate(1, 1, &offset));
}

// The largest number of free pieces: every second block of many is freed.
TEST(RangeAllocator, EverySecondBlockIsGivenBack) {
  constexpr size_t kBlocks = 1000;
  RangeAllocator ranges(kBlocks);
  size_t offset = 0;
  for (size_t i = 0; i < kBlocks; ++i) ASSERT_TRUE(ranges.allocate(1, 1, &offset));
  for (size_t i = 0; i < kBlocks; i += 2) ranges.release(i, 1);
  EXPECT_EQ(ranges.free_pieces(), kBlocks / 2);
  EXPECT_FALSE(ranges.allocate(2, 1, &offset));
  for (size_t i = 1; i < kBlocks; i += 2) ranges.release(i, 1);
  EXPECT_EQ(ranges.free_pieces(), 1u);
  EXPECT_TRUE(ranges.allocate(kBlocks, 1, &offset));
}

// Random sequences against a model: pieces never overlap, and freeing everything leaves one piece.
TEST(RangeAllocator, RandomSequencesKeepPiecesApartAndMerge) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    constexpr size_t kBytes = 1000;
    RangeAllocator ranges(kBytes);
    std::map<size_t, size_t> model;
    size_t used = 0;
    for (int step = 0; step < 200; ++step) {
      if (model.empty() || random() % 2 == 0) {
        const size_t bytes = 1 + random() % 90;
        size_t offset = 0;
        if (!ranges.allocate(bytes, 1, &offset)) {
          EXPECT_GT(used + bytes * (model.size() + 1), kBytes)
              << "refused with room, seed " << seed;
          continue;
        }
        ASSERT_LE(offset + bytes, kBytes);
        const auto next = model.lower_bound(offset);
        ASSERT_TRUE(next == model.end() || offset + bytes <= next->first) << "seed " << seed;
        ASSERT_TRUE(next == model.begin() ||
                    std::prev(next)->first + std::prev(next)->second <= offset)
            << "seed " << seed;
        model[offset] = bytes;
        used += bytes;
      } else {
        auto victim = std::next(model.begin(), static_cast<long>(random() % model.size()));
        if (victim->second > 1 && random() % 3 == 0) {
          const size_t kept = 1 + random() % (victim->second - 1);
          ranges.shorten(victim->first + kept, victim->second - kept);
          used -= victim->second - kept;
          victim->second = kept;
          continue;
        }
        ranges.release(victim->first, victim->second);
        used -= victim->second;
        model.erase(victim);
      }
    }
    for (const auto& [offset, bytes] : model) ranges.release(offset, bytes);
    EXPECT_EQ(ranges.free_pieces(), 1u) << "seed " << seed;
    size_t offset = 1;
    EXPECT_TRUE(ranges.allocate(kBytes, 1, &offset));
  }
}

}  // namespace
}  // namespace mobius::engine
