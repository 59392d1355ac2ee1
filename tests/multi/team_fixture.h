// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "fixture.h"

namespace mobius_test {

// A team that may include the caller, freed at the end.
struct TestTeam {
  std::string name;
  int kind = 0;  // the same at all members, different for each team that a process is in
  mob_team_t handle = MOB_TEAM_NONE;
  mob_rank_t rank = -1;
  mob_rank_t size = 0;
};

// The world, its halves, every second rank in reverse, every rank alone, the world in an order
// unrelated to hosts, and the first half with the last rank.
class Teams {
 public:
  static constexpr size_t kKinds = 6;

  Teams() {
    const mob_rank_t me = mob_rank();
    const mob_rank_t half = (mob_size() + 1) / 2;
    add("world", MOB_TEAM_WORLD);
    mob_team_t team = MOB_TEAM_NONE;
    EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, me < half ? 0 : 1, 0, &team), MOB_OK);
    add("half", team);
    const mob_rank_t last = (mob_size() - 1) / 2 * 2;
    EXPECT_EQ(mob_team_split_strided(MOB_TEAM_WORLD, last, -2, half, &team), MOB_OK);
    add("every second, in reverse", team);
    EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, me, 0, &team), MOB_OK);
    add("alone", team);
    const int place = me % 2 == 0 ? me : 2 * mob_size() - me;
    EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, place, &team), MOB_OK);
    add("even ranks, then odd ones in reverse", team);
    const bool is_in = me < half || me == mob_size() - 1;
    EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, is_in ? 0 : -1, 0, &team), MOB_OK);
    add("half and the last", team);
  }
  ~Teams() {
    for (const TestTeam& team : teams_) {
      if (team.handle == MOB_TEAM_WORLD) continue;
      EXPECT_EQ(mob_team_free(team.handle), MOB_OK);
    }
  }
  Teams(const Teams&) = delete;
  Teams& operator=(const Teams&) = delete;

  // The teams that include the caller.
  auto begin() const { return teams_.begin(); }
  auto end() const { return teams_.end(); }

 private:
  void add(const char* name, mob_team_t handle) {
    ++kinds_;
    if (handle == MOB_TEAM_NONE) return;
    teams_.push_back({name, kinds_, handle, mob_team_rank(handle), mob_team_size(handle)});
  }

  int kinds_ = 0;
  std::vector<TestTeam> teams_;
};

}  // namespace mobius_test
