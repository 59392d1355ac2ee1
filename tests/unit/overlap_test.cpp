// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/overlap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>
#include <vector>

namespace mobius::transport {
namespace {

struct Box {
  size_t run;
  std::vector<size_t> counts;
  std::vector<ptrdiff_t> strides;
};

bool overlaps(const Box& box) {
  return runs_overlap(box.run, static_cast<int>(box.counts.size()), box.counts.data(),
                      box.strides.data());
}

// Marks every byte of every run.
bool overlaps_by_force(const Box& box) {
  std::set<ptrdiff_t> bytes;
  std::vector<size_t> index(box.counts.size(), 0);
  for (;;) {
    ptrdiff_t start = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      start += static_cast<ptrdiff_t>(index[d]) * box.strides[d];
    }
    for (size_t i = 0; i < box.run; ++i) {
      if (!bytes.insert(start + static_cast<ptrdiff_t>(i)).second) return true;
    }
    size_t d = 0;
    while (d < index.size() && ++index[d] == box.counts[d]) index[d++] = 0;
    if (d == index.size()) return false;
  }
}

TEST(Overlap, BoxesThatMustPass) {
  EXPECT_FALSE(overlaps({8, {}, {}}));
  EXPECT_FALSE(overlaps({8, {100}, {8}}));
  EXPECT_FALSE(overlaps({8, {100}, {-8}}));
  EXPECT_FALSE(overlaps({64, {10, 10}, {256, 4096}}));      // part of an array
  EXPECT_FALSE(overlaps({64, {10, 10}, {4096, 256}}));      // the same with the dimensions swapped
  EXPECT_FALSE(overlaps({8, {1000, 2}, {16, 8}}));          // two interleaved combs
  EXPECT_FALSE(overlaps({8, {2, 1000}, {8 + 16000, 16}}));  // shifted by an odd number of teeth
  EXPECT_FALSE(overlaps({4, {100, 3}, {12, 8}}));           // not nested; teeth in gaps
  EXPECT_FALSE(overlaps({1, {3, 5}, {5, 3}}));              // coprime, short
}

TEST(Overlap, BoxesThatMustNot) {
  EXPECT_TRUE(overlaps({8, {2}, {0}}));
  EXPECT_TRUE(overlaps({8, {2}, {7}}));
  EXPECT_TRUE(overlaps({8, {2}, {-7}}));
  EXPECT_TRUE(overlaps({8, {4, 2}, {8, 24}}));  // the second begins in the first's last run
  EXPECT_TRUE(overlaps({1, {4, 6}, {5, 3}}));   // coprime, long enough to meet
  EXPECT_TRUE(overlaps({8, {3, 3, 3}, {64, -128, 256}}));
}

TEST(Overlap, AgreesWithBruteForceOnSmallBoxes) {
  std::mt19937 random(7);
  int overlapping = 0;
  int disjoint = 0;
  for (int round = 0; round < 30000; ++round) {
    Box box;
    box.run = 1 + random() % 6;
    const size_t dimensions = 1 + random() % 4;
    const ptrdiff_t widest = 4 << (random() % 7);
    for (size_t d = 0; d < dimensions; ++d) {
      box.counts.push_back(2 + random() % 4);
      box.strides.push_back(static_cast<ptrdiff_t>(random() % static_cast<size_t>(2 * widest)) -
                            widest);
    }
    const bool expected = overlaps_by_force(box);
    (expected ? overlapping : disjoint) += 1;
    ASSERT_EQ(overlaps(box), expected) << "round " << round << ", run " << box.run << ", counts "
                                       << testing::PrintToString(box.counts) << ", strides "
                                       << testing::PrintToString(box.strides);
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_GT(disjoint, 1000);
}

// Nearly equal strides in all dimensions, chosen so that no two runs meet: too hard to decide
// within the permitted steps, so it must pass.
TEST(Overlap, AHardBoxIsNotRefused) {
  Box box = {8, std::vector<size_t>(7, 10), {}};
  ptrdiff_t place = 8;
  for (int d = 0; d < 7; ++d) {
    box.strides.push_back((ptrdiff_t{1} << 40) + place);
    place *= 21;
  }
  EXPECT_FALSE(overlaps(box));
}

}  // namespace
}  // namespace mobius::transport
