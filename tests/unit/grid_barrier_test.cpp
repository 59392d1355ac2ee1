// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/grid_barrier.h"

#include <gtest/gtest.h>

#include <set>

namespace mobius::engine {
namespace {

using Ranks = std::set<mob_rank_t>;

Ranks as_set(const std::vector<mob_rank_t>& ranks) { return {ranks.begin(), ranks.end()}; }

TEST(GridBarrier, ReadersOfTheirFlagsKnowAllMembers) {
  for (mob_rank_t size = 1; size <= 200; ++size) {
    for (mob_rank_t rank = 0; rank < size; ++rank) {
      const GridBarrier grid(size, rank);
      Ranks known = as_set(grid.row());
      EXPECT_FALSE(known.contains(rank));
      known.insert(rank);
      for (const mob_rank_t other : grid.other_rows()) {
        EXPECT_FALSE(known.contains(other)) << size << ", " << rank;  // each of another row
        known.insert(other);
        const Ranks row = as_set(GridBarrier(size, other).row());
        known.insert(row.begin(), row.end());
      }
      EXPECT_EQ(known.size(), static_cast<size_t>(size)) << "rank " << rank;
    }
  }
}

TEST(GridBarrier, OnlookersAreTheReaders) {
  for (mob_rank_t size = 1; size <= 130; ++size) {
    std::vector<Ranks> lookers(static_cast<size_t>(size));
    for (mob_rank_t rank = 0; rank < size; ++rank) {
      for (const mob_rank_t other : GridBarrier(size, rank).other_rows()) {
        lookers[static_cast<size_t>(other)].insert(rank);
      }
      for (const mob_rank_t other : GridBarrier(size, rank).row()) {
        EXPECT_TRUE(as_set(GridBarrier(size, other).row()).contains(rank));
      }
    }
    for (mob_rank_t rank = 0; rank < size; ++rank) {
      EXPECT_EQ(as_set(GridBarrier(size, rank).onlookers()), lookers[static_cast<size_t>(rank)])
          << size << ", " << rank;
    }
  }
}

TEST(GridBarrier, NobodyLooksAtMoreThanTwiceTheRoot) {
  for (mob_rank_t size : {17, 64, 100, 129, 256, 1000}) {
    for (mob_rank_t rank = 0; rank < size; rank += 7) {
      const GridBarrier grid(size, rank);
      const size_t looks = grid.row().size() + grid.other_rows().size();
      mob_rank_t root = 1;
      while (root * root < size) ++root;
      EXPECT_LE(looks, static_cast<size_t>(2 * root)) << size;
    }
  }
}

}  // namespace
}  // namespace mobius::engine
