// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "engine/slab.h"
#include "engine/targets.h"

namespace mobius::engine {
namespace {

TEST(PartMap, FindsThePartOfEveryChunkAndNothingElse) {
  PartMap map;
  ASSERT_EQ(map.open(64 * kChunkBytes), MOB_OK);
  const Part part(3 * kChunkBytes, 2 * kChunkBytes + 1, 4);  // reaches into a third chunk
  map.set(part, &part);
  EXPECT_EQ(map.find(3 * kChunkBytes - 1), nullptr);
  EXPECT_EQ(map.find(3 * kChunkBytes), &part);
  EXPECT_EQ(map.find(5 * kChunkBytes), &part);
  EXPECT_EQ(map.find(6 * kChunkBytes), nullptr);
  EXPECT_EQ(map.find(64 * kChunkBytes), nullptr);
  EXPECT_EQ(map.find(~uint64_t{0}), nullptr);
  map.set(part, nullptr);
  EXPECT_EQ(map.find(3 * kChunkBytes), nullptr);
}

TEST(PartMap, EmptyPartsHaveNoChunks) {
  PartMap map;
  ASSERT_EQ(map.open(4 * kChunkBytes), MOB_OK);
  const Part part(kChunkBytes, 0, 0);
  map.set(part, &part);
  EXPECT_EQ(map.find(kChunkBytes), nullptr);
}

// The inlined check, exhaustively at the edges of a part and for ranks that could be confused.
class TargetTable : public testing::Test {
 protected:
  static constexpr uint64_t kStart = 0x600000200000;
  static constexpr uint64_t kOther = 0x600000600000;
  void TearDown() override {
    for (mob_rank_t rank : {0, 5, 40000}) {
      target_forget(rank, kStart);
      target_forget(rank, kOther);
    }
  }
  static bool direct(mob_rank_t rank, uint64_t address, unsigned log2_bytes) {
    return mob_is_direct_(rank, reinterpret_cast<const void*>(address), log2_bytes) != 0;
  }
};

TEST_F(TargetTable, ExactAtBothEndsForEverySize) {
  for (const uint64_t bytes : {1, 2, 3, 4, 7, 8, 9, 15, 16, 4096}) {
    target_remember(5, kStart, target_limits(bytes));
    for (unsigned k = 0; k < 4; ++k) {
      const uint64_t width = uint64_t{1} << k;
      for (uint64_t at = kStart - 20; at < kStart + bytes + 20; ++at) {
        const bool inside = at >= kStart && at + width <= kStart + bytes;
        ASSERT_EQ(direct(5, at, k), inside)
            << width << " bytes at offset " << static_cast<int64_t>(at - kStart) << " of " << bytes;
        ASSERT_EQ(target_covers(5, reinterpret_cast<const void*>(at), width), inside);
      }
    }
  }
}

TEST_F(TargetTable, NoOtherRankIsMistakenForTheRememberedOne) {
  target_remember(5, kStart, target_limits(4096));
  target_remember(40000, kStart, target_limits(4096));
  for (int bit = 0; bit < 32; ++bit) {
    const auto flipped = static_cast<mob_rank_t>(uint32_t{5} ^ (uint32_t{1} << bit));
    EXPECT_FALSE(direct(flipped, kStart, 3)) << "bit " << bit;
  }
  EXPECT_FALSE(direct(-1, kStart, 3));
  EXPECT_FALSE(direct(40000 - (1 << MOB_RANK_INDEX_BITS_), kStart, 3));
  EXPECT_TRUE(direct(40000, kStart, 3));
}

TEST_F(TargetTable, ThePartBeforeIsRecalledExactlyAndNowAndThenNot) {
  const auto recall = [](uint64_t address, size_t bytes) {
    return target_recall(5, reinterpret_cast<const void*>(address), bytes);
  };
  target_remember(5, kStart, target_limits(100));
  EXPECT_FALSE(recall(kStart, 8));  // nothing was before it
  target_remember(5, kOther, target_limits(4096));
  EXPECT_TRUE(direct(5, kOther, 3));
  EXPECT_FALSE(direct(5, kStart, 3));
  EXPECT_TRUE(recall(kStart, 100));
  EXPECT_TRUE(recall(kStart + 99, 1));
  EXPECT_FALSE(recall(kStart + 99, 2));
  EXPECT_FALSE(recall(kStart - 1, 2));
  EXPECT_FALSE(recall(kOther, 8));
  int refused = 0;
  for (int i = 0; i < 320; ++i) refused += recall(kStart, 8) ? 0 : 1;
  EXPECT_EQ(refused, 10);  // these make the caller look again, which changes the two
  target_forget(5, kStart);
  EXPECT_FALSE(recall(kStart, 8));
  EXPECT_TRUE(direct(5, kOther, 3));
}

// Two threads that move one entry at the same time leave it describing one part, not a mixture.
TEST_F(TargetTable, ChangesOfTwoThreadsDoNotMix) {
  constexpr int kRounds = 20'000;
  std::barrier together(2);
  int mixed = 0;
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      together.arrive_and_wait();
      for (int i = 0; i < 20; ++i) target_remember(5, kOther, target_limits(4096));
      together.arrive_and_wait();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    together.arrive_and_wait();
    for (int i = 0; i < 20; ++i) target_remember(5, kStart, target_limits(100));
    together.arrive_and_wait();
    const bool first = direct(5, kStart, 0);
    const uint64_t last = first ? kStart + 99 : kOther + 4095;
    if (!direct(5, last, 0) || direct(5, last + 1, 0) || first == direct(5, kOther, 0)) ++mixed;
  }
  other.join();
  EXPECT_EQ(mixed, 0);
}

TEST_F(TargetTable, ForgettingIsPerPart) {
  target_remember(0, kStart, target_limits(64));
  target_forget(0, kStart + 64);
  EXPECT_TRUE(direct(0, kStart, 3));
  target_forget(0, kStart);
  EXPECT_FALSE(direct(0, kStart, 3));
}

}  // namespace
}  // namespace mobius::engine
