// SPDX-License-Identifier: BSD-3-Clause
#include "engine/range_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace mobius::engine {
namespace {

TEST(RangeAllocator, FirstFitAndExhaustion) {
  RangeAllocator ranges(100);
  size_t a = 1;
  size_t b = 1;
  size_t c = 1;
  ASSERT_TRUE(ranges.allocate(60, &a));
  ASSERT_TRUE(ranges.allocate(40, &b));
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 60u);
  EXPECT_FALSE(ranges.allocate(1, &c));
  EXPECT_EQ(c, 1u);
  ranges.release(a, 60);
  ASSERT_TRUE(ranges.allocate(10, &c));
  EXPECT_EQ(c, 0u);
}

TEST(RangeAllocator, EmptyHasNothingToGive) {
  RangeAllocator ranges;
  size_t offset = 0;
  EXPECT_FALSE(ranges.allocate(1, &offset));
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
        if (!ranges.allocate(bytes, &offset)) {
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
        ranges.release(victim->first, victim->second);
        used -= victim->second;
        model.erase(victim);
      }
    }
    for (const auto& [offset, bytes] : model) ranges.release(offset, bytes);
    EXPECT_EQ(ranges.free_pieces(), 1u) << "seed " << seed;
    size_t offset = 1;
    EXPECT_TRUE(ranges.allocate(kBytes, &offset));
  }
}

}  // namespace
}  // namespace mobius::engine
