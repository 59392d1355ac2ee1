// SPDX-License-Identifier: BSD-3-Clause

// Calls in which the living members of a team agree, while all live. tests/faults has the others.

#include <atomic>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_error;

namespace {

bool is_on_one_host() { return mob_host_size() == mob_size(); }

}  // namespace

TEST(Shrink, WithoutDeathsTheNewTeamIsAsTheOldOne) {
  if (!is_on_one_host()) return;
  mob_team_t reversed = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() / 3, -mob_rank(), &reversed), MOB_OK);
  for (const mob_team_t old : {MOB_TEAM_WORLD, reversed}) {
    for (int turn = 0; turn < 3; ++turn) {
      mob_team_t team = MOB_TEAM_NONE;
      EXPECT_EQ(mob_team_shrink(old, &team), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_team_size(team), mob_team_size(old));
      EXPECT_EQ(mob_team_rank(team), mob_team_rank(old));
      for (mob_rank_t i = 0; i < mob_team_size(old); ++i) {
        EXPECT_EQ(mob_team_number(team, i), mob_team_number(old, i));
      }
      int64_t one = 1;
      int64_t sum = 0;
      EXPECT_EQ(mob_allreduce(team, MOB_SUM, MOB_INT64, &one, &sum, 1), MOB_OK);
      EXPECT_EQ(sum, mob_team_size(old));
      EXPECT_EQ(mob_team_barrier(old), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_team_free(team), MOB_OK) << mob_last_error();
    }
  }
  EXPECT_EQ(mob_team_free(reversed), MOB_OK) << mob_last_error();
}

TEST(Shrink, AgreeingKeepsTheBitsThatAllHaveSet) {
  if (!is_on_one_host()) return;
  for (uint32_t turn = 0; turn < 100; ++turn) {
    // One member lacks bit 0, each has a bit of its own, all have bit 31.
    const bool lacks = static_cast<mob_rank_t>(turn) % mob_size() == mob_rank();
    uint32_t bits = 1u << 31 | turn << 16 | (lacks ? 0u : 1u) | 2u << mob_rank() % 8;
    EXPECT_EQ(mob_team_agree(MOB_TEAM_WORLD, &bits), MOB_OK) << mob_last_error();
    const uint32_t own = mob_size() == 1 ? 2u : 0u;
    EXPECT_EQ(bits, 1u << 31 | turn << 16 | own);
  }
  uint32_t none = 0;
  EXPECT_EQ(mob_team_agree(MOB_TEAM_WORLD, &none), MOB_OK) << mob_last_error();
  EXPECT_EQ(none, 0u);
}

// A wrong call takes part, and fails everywhere.
TEST(Shrink, WrongArgumentsAreRefused) {
  mob_team_t team = MOB_TEAM_NONE;
  uint32_t bits = 1;
  expect_error(mob_team_shrink(MOB_TEAM_NONE, &team), MOB_ERR_HANDLE, "mob_team_shrink",
               "is not a live team");
  expect_error(mob_team_agree(MOB_TEAM_NONE, &bits), MOB_ERR_HANDLE, "mob_team_agree",
               "is not a live team");
  if (!is_on_one_host()) {
    expect_error(mob_team_shrink(MOB_TEAM_WORLD, &team), MOB_ERR_STATE, "mob_team_shrink",
                 "several hosts");
    expect_error(mob_team_agree(MOB_TEAM_WORLD, &bits), MOB_ERR_STATE, "mob_team_agree",
                 "several hosts");
    return;
  }
  const bool last = mob_rank() == mob_size() - 1;
  const mob_status_t status = mob_team_shrink(MOB_TEAM_WORLD, last ? nullptr : &team);
  EXPECT_EQ(status, last ? MOB_ERR_ARGUMENT : MOB_ERR_PEER) << mob_last_error();
  EXPECT_EQ(team, MOB_TEAM_NONE);
  EXPECT_EQ(mob_team_agree(MOB_TEAM_WORLD, last ? nullptr : &bits),
            last ? MOB_ERR_ARGUMENT : MOB_OK);
  EXPECT_EQ(bits, last ? 1u : 0u);
  barrier();
}

namespace {

void try_to_agree(const mob_message_t*, void* argument, mob_delivery_t*) {
  auto* const statuses = static_cast<std::atomic<int>*>(argument);
  mob_team_t team = MOB_TEAM_NONE;
  uint32_t bits = 1;
  statuses[0] = mob_team_shrink(MOB_TEAM_WORLD, &team);
  statuses[1] = mob_team_agree(MOB_TEAM_WORLD, &bits);
}

}  // namespace

TEST(Shrink, HandlersMayNotAgree) {
  static std::atomic<int> statuses[2] = {1, 1};
  EXPECT_EQ(mob_handler_register(61, try_to_agree, statuses), MOB_OK);
  barrier();
  EXPECT_EQ(mob_message_send(mob_rank(), 61, nullptr, 0, nullptr, 0, nullptr), MOB_OK);
  while (statuses[1] == 1) EXPECT_EQ(mob_poll(), MOB_OK);
  EXPECT_EQ(statuses[0], MOB_ERR_STATE);
  EXPECT_EQ(statuses[1], MOB_ERR_STATE);
  barrier();
}
