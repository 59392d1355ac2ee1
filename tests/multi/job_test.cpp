// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>

#include <cstdlib>
#include <string>

#include "fixture.h"

using mobius_test::Shared;

// Libraries that are loaded for a job on several hosts install handlers for crashes.
TEST(Job, SignalsBelongToTheProgram) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const auto signals = {SIGINT, SIGTERM, SIGUSR1};  // sanitizers handle crashes
#else
  const auto signals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM, SIGUSR1};
#endif
  for (const int signal : signals) {
    struct sigaction action{};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << signal;
  }
}

TEST(Job, RanksAndLocalPeersAreConsistent) {
  EXPECT_EQ(mob_initialized(), 1);
  ASSERT_GT(mob_size(), 0);
  EXPECT_GE(mob_rank(), 0);
  EXPECT_LT(mob_rank(), mob_size());
  EXPECT_LE(mob_host_size(), mob_size());
  mob_rank_t local_size = 0;
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) local_size += mob_is_host_mate(rank);
  EXPECT_EQ(local_size, mob_host_size());
  mob_rank_t before = -1;
  for (mob_rank_t i = 0; i < mob_host_size(); ++i) {
    mob_rank_t rank = -1;
    EXPECT_EQ(mob_host_mate(i, &rank), MOB_OK);
    EXPECT_EQ(mob_is_host_mate(rank), 1);
    EXPECT_EQ(i == mob_host_rank(), rank == mob_rank());
    EXPECT_GT(rank, before);
    before = rank;
  }
  EXPECT_EQ(mob_host_mate(mob_host_size(), &before), MOB_ERR_RANK);
  EXPECT_EQ(mob_host_mate(-1, &before), MOB_ERR_RANK);
}

TEST(Job, EveryRankIsThereOnce) {
  const Shared seen(static_cast<size_t>(mob_size()));
  EXPECT_EQ(mob_put1(0, seen.at(0, static_cast<size_t>(mob_rank())), 1), MOB_OK);
  mobius_test::barrier();
  for (mob_rank_t i = 0; mob_rank() == 0 && i < mob_size(); ++i) EXPECT_EQ(seen.local()[i], 1) << i;
}

TEST(Job, RankAgreesWithTheLauncher) {
  const char* rank = std::getenv("MOBIUS_RANK");
  if (rank == nullptr) rank = std::getenv("PMIX_RANK");
  EXPECT_EQ(std::to_string(mob_rank()), rank != nullptr ? rank : "0");
}
