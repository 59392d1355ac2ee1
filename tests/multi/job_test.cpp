// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <string>

#include "fixture.h"

using mobius_test::Shared;

TEST(Job, RanksAndHostMatesAreConsistent) {
  EXPECT_EQ(mob_initialized(), 1);
  ASSERT_GT(mob_size(), 0);
  EXPECT_GE(mob_rank(), 0);
  EXPECT_LT(mob_rank(), mob_size());
  EXPECT_EQ(mob_host_size(), mob_size());
  for (mob_rank_t i = 0; i < mob_host_size(); ++i) {
    mob_rank_t rank = -1;
    EXPECT_EQ(mob_host_mate(i, &rank), MOB_OK);
    EXPECT_EQ(mob_is_host_mate(rank), 1);
    if (rank == mob_rank()) {
      EXPECT_EQ(i, mob_host_rank());
    }
  }
}

TEST(Job, EveryRankIsThereOnce) {
  const Shared seen(static_cast<size_t>(mob_size()));
  EXPECT_EQ(mob_put1(0, seen.at(0, static_cast<size_t>(mob_rank())), 1), MOB_OK);
  mobius_test::barrier();
  for (mob_rank_t i = 0; mob_rank() == 0 && i < mob_size(); ++i) EXPECT_EQ(seen.local()[i], 1) << i;
}

TEST(Job, RankAgreesWithTheLauncher) {
  const char* rank = std::getenv("MOBIUS_RANK");
  EXPECT_EQ(std::to_string(mob_rank()), rank != nullptr ? rank : "0");
}
