// SPDX-License-Identifier: BSD-3-Clause

// Runs random programs in the ranks of a job: `mobius run -n 4 random_programs --programs 1000`.
// With --spawned the ranks spawn as many others, and the merged team runs the programs.

#include <mobius/mobius.h>

#include <cstdio>

#include "random/rank.h"

namespace {

// Both sides of a spawn come here.
void run_merged(const random_program::Options& options, char** argv) {
  using random_program::check;
  mob_bridge_t bridge = mob_parent();
  if (bridge == MOB_BRIDGE_NONE) {
    check(mob_spawn(MOB_TEAM_WORLD, argv[0], argv + 1, mob_size(), nullptr, &bridge), "mob_spawn");
  }
  mob_team_t team = MOB_TEAM_NONE;
  check(mob_bridge_merge(bridge, 0, &team), "mob_bridge_merge");
  random_program::RankRunner(options, team).run();
  check(mob_team_free(team), "mob_team_free");
  check(mob_bridge_disconnect(bridge), "mob_bridge_disconnect");
}

}  // namespace

int main(int argc, char** argv) {
  random_program::Options options;
  if (!random_program::parse(argc, argv, &options)) return 2;
  if (mob_init() != MOB_OK) {
    std::fprintf(stderr, "mob_init: %s\n", mob_last_error());
    return 1;
  }
  if (options.spawned) {
    run_merged(options, argv);
  } else {
    random_program::RankRunner(options).run();
  }
  const mob_rank_t rank = mob_rank();
  random_program::check(mob_finalize(), "mob_finalize");
  if (rank == 0) {
    std::printf("%llu programs from seed %llu agree with the model\n",
                static_cast<unsigned long long>(options.programs),
                static_cast<unsigned long long>(options.seed));
  }
  return 0;
}
