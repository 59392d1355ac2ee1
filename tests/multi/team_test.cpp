// SPDX-License-Identifier: BSD-3-Clause

// The members of a team and their ranks.

#include <algorithm>
#include <array>
#include <numeric>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_error;

namespace {

// Expects these ranks of the job as members, in this order.
void expect_members(mob_team_t team, const std::vector<mob_rank_t>& members) {
  const auto own = std::ranges::find(members, mob_rank());
  if (own == members.end()) {
    EXPECT_EQ(team, MOB_TEAM_NONE);
    return;
  }
  EXPECT_EQ(mob_team_size(team), static_cast<mob_rank_t>(members.size()));
  EXPECT_EQ(mob_team_rank(team), static_cast<mob_rank_t>(own - members.begin()));
  for (mob_rank_t r = 0; r < static_cast<mob_rank_t>(members.size()); ++r) {
    mob_rank_t world = -1;
    EXPECT_EQ(mob_team_translate(team, r, MOB_TEAM_WORLD, &world), MOB_OK) << mob_last_error();
    EXPECT_EQ(world, members[static_cast<size_t>(r)]);
  }
  for (mob_rank_t world = 0; world < mob_size(); ++world) {
    const auto place = std::ranges::find(members, world);
    mob_rank_t rank = -2;
    EXPECT_EQ(mob_team_translate(MOB_TEAM_WORLD, world, team, &rank), MOB_OK);
    EXPECT_EQ(rank, place == members.end() ? -1 : static_cast<mob_rank_t>(place - members.begin()));
  }
}

}  // namespace

TEST(Teams, TheWorldHasEveryRank) {
  EXPECT_EQ(mob_team_rank(MOB_TEAM_WORLD), mob_rank());
  EXPECT_EQ(mob_team_size(MOB_TEAM_WORLD), mob_size());
  std::vector<mob_rank_t> all(static_cast<size_t>(mob_size()));
  std::iota(all.begin(), all.end(), 0);
  expect_members(MOB_TEAM_WORLD, all);
}

TEST(Teams, SplitByColourOrdersByKeyThenRank) {
  for (const int colours : {1, 2, 3}) {
    for (const bool backwards : {false, true}) {
      const int colour = mob_rank() % colours;
      std::vector<mob_rank_t> members;
      for (mob_rank_t r = colour; r < mob_size(); r += colours) members.push_back(r);
      if (backwards) std::ranges::reverse(members);
      mob_team_t team = MOB_TEAM_NONE;
      EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, colour, backwards ? -mob_rank() : 5, &team), MOB_OK)
          << mob_last_error();
      expect_members(team, members);
      EXPECT_EQ(mob_team_free(team), MOB_OK);
    }
  }
  barrier();
}

TEST(Teams, NegativeColoursAreInNone) {
  const bool in = mob_rank() == 0;
  mob_team_t team = MOB_TEAM_WORLD;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, in ? 3 : -1, 0, &team), MOB_OK) << mob_last_error();
  expect_members(team, {0});
  EXPECT_EQ(mob_team_free(team), MOB_OK);
  barrier();
}

TEST(Teams, StridesGoBothWays) {
  const mob_rank_t size = mob_size();
  for (mob_rank_t stride = 1; stride <= std::min(size, 3); ++stride) {
    std::vector<mob_rank_t> members;
    for (mob_rank_t r = 0; r < size; r += stride) members.push_back(r);
    const auto count = static_cast<mob_rank_t>(members.size());
    mob_team_t team = MOB_TEAM_NONE;
    EXPECT_EQ(mob_team_split_strided(MOB_TEAM_WORLD, 0, stride, count, &team), MOB_OK);
    expect_members(team, members);
    EXPECT_EQ(mob_team_free(team), MOB_OK);
    team = MOB_TEAM_NONE;
    EXPECT_EQ(mob_team_split_strided(MOB_TEAM_WORLD, members.back(), -stride, count, &team),
              MOB_OK);
    std::ranges::reverse(members);
    expect_members(team, members);
    EXPECT_EQ(mob_team_free(team), MOB_OK);
  }
  barrier();
}

namespace {

int exchange_over(const void* mine, size_t bytes, void* all, void* team) {
  return mob_allgather(*static_cast<mob_team_t*>(team), mine, all, bytes);
}

int exchange_nothing(const void*, size_t, void*, void*) { return 1; }

}  // namespace

// Only the listed processes call it: those of even and of odd rank make teams apart, backwards.
TEST(Teams, GatheredTeamsHaveTheListedProcesses) {
  std::vector<mob_rank_t> members;
  for (mob_rank_t r = mob_rank() % 2; r < mob_size(); r += 2) members.push_back(r);
  mob_team_t meeting = MOB_TEAM_NONE;
  ASSERT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() % 2, -mob_rank(), &meeting), MOB_OK);
  std::ranges::reverse(members);
  const auto count = static_cast<mob_rank_t>(members.size());
  for (int i = 0; i < (mob_rank() % 2 == 0 ? 3 : 2); ++i) {
    mob_team_t team = MOB_TEAM_NONE;
    ASSERT_EQ(mob_team_gather(members.data(), count, exchange_over, &meeting, &team), MOB_OK)
        << mob_last_error();
    expect_members(team, members);
    int64_t sum = 0;
    const int64_t one = 1;
    EXPECT_EQ(mob_allreduce(team, MOB_SUM, MOB_INT64, &one, &sum, 1), MOB_OK);
    EXPECT_EQ(sum, count);
    mob_mem_t mem = nullptr;
    EXPECT_EQ(mob_team_alloc(team, 100, 0, &mem), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_mem_free(mem), MOB_OK);
    EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  }
  EXPECT_EQ(mob_team_free(meeting), MOB_OK);
  barrier();
}

TEST(Teams, GatheringChecksItsArguments) {
  const char* const call = "mob_team_gather";
  mob_team_t team = MOB_TEAM_NONE;
  const mob_rank_t me = mob_rank();
  const mob_rank_t twice[] = {me, me};
  const mob_rank_t nobody = mob_size();
  expect_error(mob_team_gather(nullptr, 1, exchange_nothing, nullptr, &team), MOB_ERR_ARGUMENT,
               call, "list of ranks");
  expect_error(mob_team_gather(&me, 0, exchange_nothing, nullptr, &team), MOB_ERR_ARGUMENT, call,
               "at least 1");
  expect_error(mob_team_gather(&me, 1, nullptr, nullptr, &team), MOB_ERR_ARGUMENT, call,
               "exchange");
  expect_error(mob_team_gather(&me, 1, exchange_nothing, nullptr, nullptr), MOB_ERR_ARGUMENT, call,
               "result");
  expect_error(mob_team_gather(twice, 2, exchange_nothing, nullptr, &team), MOB_ERR_ARGUMENT, call,
               "twice");
  expect_error(mob_team_gather(&nobody, 1, exchange_nothing, nullptr, &team), MOB_ERR_RANK, call,
               "not in this job");
  expect_error(mob_team_gather(&me, 1, exchange_nothing, nullptr, &team), MOB_ERR_SYSTEM, call,
               "exchange failed");
  if (mob_size() > 1) {
    const mob_rank_t other = me == 0 ? 1 : 0;
    const bool knows_it = mobius_test::on_team.is_one_job;
    expect_error(mob_team_gather(&other, 1, exchange_nothing, nullptr, &team),
                 knows_it ? MOB_ERR_ARGUMENT : MOB_ERR_RANK, call,
                 knows_it ? "not listed" : "mob_bridge_merge");
  }
  EXPECT_EQ(team, MOB_TEAM_NONE);
  barrier();
}

// Lists, and teams of teams: ranks are those of the parent.
TEST(Teams, ListsNameRanksOfTheParent) {
  std::vector<mob_rank_t> odd_first;
  for (mob_rank_t r = 1; r < mob_size(); r += 2) odd_first.push_back(r);
  for (mob_rank_t r = 0; r < mob_size(); r += 2) odd_first.push_back(r);
  const auto count = static_cast<mob_rank_t>(odd_first.size());
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split_list(MOB_TEAM_WORLD, odd_first.data(), count, &team), MOB_OK);
  expect_members(team, odd_first);
  const mob_rank_t last_and_first[] = {count - 1, 0};
  const mob_rank_t taken = std::min<mob_rank_t>(count, 2);
  mob_team_t pair = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split_list(team, last_and_first, taken, &pair), MOB_OK) << mob_last_error();
  std::vector<mob_rank_t> members{odd_first.back()};
  if (taken == 2) members.push_back(odd_first.front());
  expect_members(pair, members);
  mob_rank_t found = -2;
  if (pair != MOB_TEAM_NONE) {
    EXPECT_EQ(mob_team_translate(pair, 0, team, &found), MOB_OK);
    EXPECT_EQ(found, count - 1);
  }
  EXPECT_EQ(mob_team_free(pair), MOB_OK);
  EXPECT_EQ(mob_team_free(team), MOB_OK);
  barrier();
}

// All members of the world make a team and must get the given errors: ranks 0, 1 and the others.
// The world remains usable.
template <typename Call>
void expect_disagreement(const std::array<mob_status_t, 3>& expected, const char* detail,
                         Call call) {
  mob_team_t team = MOB_TEAM_WORLD;
  const mob_status_t status = call(&team);
  EXPECT_EQ(status, expected[static_cast<size_t>(std::min(mob_rank(), 2))]) << mob_last_error();
  const std::string text = mob_last_error();
  EXPECT_EQ(text.rfind("mob_team_split", 0), 0u) << text;
  EXPECT_NE(text.find(status == MOB_ERR_PEER ? "failed at" : detail), std::string::npos) << text;
  EXPECT_EQ(team, MOB_TEAM_WORLD);
  barrier();
}

mob_status_t split_list(const std::vector<mob_rank_t>& ranks, mob_team_t* team) {
  return mob_team_split_list(MOB_TEAM_WORLD, ranks.data(), static_cast<mob_rank_t>(ranks.size()),
                             team);
}

TEST(Teams, MembersThatDisagreeAllFail) {
  if (mob_size() == 1) GTEST_SKIP() << "one process agrees with itself";
  const bool first = mob_rank() == 0;
  constexpr mob_status_t kArgument = MOB_ERR_ARGUMENT;
  constexpr mob_status_t kPeer = MOB_ERR_PEER;
  expect_disagreement({kArgument, kArgument, kArgument}, "by colour and by ranks", [&](auto* team) {
    return first ? mob_team_split_strided(MOB_TEAM_WORLD, 0, 1, 1, team)
                 : mob_team_split(MOB_TEAM_WORLD, 0, 0, team);
  });
  expect_disagreement({kPeer, kArgument, kPeer}, "pass different ranks", [&](auto* team) {
    return mob_team_split_strided(MOB_TEAM_WORLD, 0, 1, first ? 1 : 2, team);
  });
  expect_disagreement({kArgument, kArgument, kPeer}, "pass different ranks", [&](auto* team) {
    return first ? split_list({0, 1}, team) : split_list({1, 0}, team);
  });
  // Errors of one member alone.
  expect_disagreement({MOB_ERR_RANK, kPeer, kPeer}, "not in the team",
                      [&](auto* team) { return split_list({0, first ? mob_size() : 1}, team); });
  expect_disagreement({kArgument, kPeer, kPeer}, "stride", [&](auto* team) {
    return mob_team_split_strided(MOB_TEAM_WORLD, 0, first ? 0 : 1, 2, team);
  });
  expect_disagreement({kArgument, kPeer, kPeer}, "null", [&](auto* team) {
    return mob_team_split(MOB_TEAM_WORLD, 0, 0, first ? nullptr : team);
  });
}

// As programs of ARMCI do, and of MPI-2.2.
TEST(Teams, SeveralListsMakeSeveralTeams) {
  std::vector<mob_rank_t> half;
  for (mob_rank_t r = mob_rank() % 2; r < mob_size(); r += 2) half.push_back(r);
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(split_list(half, &team), MOB_OK) << mob_last_error();
  expect_members(team, half);
  EXPECT_EQ(mob_team_free(team), MOB_OK);
  if (mob_size() == 1) return;
  // A stride and the list that it stands for are equivalent.
  EXPECT_EQ(mob_rank() == 0 ? mob_team_split_strided(MOB_TEAM_WORLD, 1, -1, 2, &team)
                            : split_list({1, 0}, &team),
            MOB_OK)
      << mob_last_error();
  expect_members(team, {1, 0});
  EXPECT_EQ(mob_team_free(team), MOB_OK);
  barrier();
}

// A team cannot be freed before the objects made on it, whatever they are.
TEST(Teams, AreKeptWhileTheyAreUsed) {
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() % 2, 0, &team), MOB_OK);
  const auto expect_kept = [team] {
    expect_error(mob_team_free(team), MOB_ERR_STATE, "mob_team_free", "1 objects of this team");
  };
  mob_mem_t mem = nullptr;
  EXPECT_EQ(mob_team_alloc(team, 8, 0, &mem), MOB_OK) << mob_last_error();
  expect_kept();
  EXPECT_EQ(mob_mem_free(mem), MOB_OK) << mob_last_error();
  mob_heap_t heap = nullptr;
  EXPECT_EQ(mob_heap_create(team, 0, 8, &heap), MOB_OK) << mob_last_error();
  expect_kept();
  EXPECT_EQ(mob_heap_destroy(heap), MOB_OK) << mob_last_error();
  mob_epoch_t epoch = nullptr;
  EXPECT_EQ(mob_epoch_create(team, &epoch), MOB_OK) << mob_last_error();
  expect_kept();
  EXPECT_EQ(mob_epoch_fence(epoch), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_epoch_free(epoch), MOB_OK) << mob_last_error();
  mob_access_t access = nullptr;
  EXPECT_EQ(mob_access_create(team, &access), MOB_OK) << mob_last_error();
  expect_kept();
  EXPECT_EQ(mob_access_free(access), MOB_OK) << mob_last_error();
  mob_mutexes_t mutexes = nullptr;
  EXPECT_EQ(mob_mutexes_create(team, 1, &mutexes), MOB_OK) << mob_last_error();
  expect_kept();
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
  // A failed call does not count as a user either.
  EXPECT_NE(mob_epoch_create(team, nullptr), MOB_OK);
  EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
  barrier();
}
