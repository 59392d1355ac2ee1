// SPDX-License-Identifier: BSD-3-Clause

// Runs random programs in the ranks of a job: `mobius run -n 4 random_programs --programs 1000`.
// On the team of a spawn, or of two jobs: `random_programs spawned --programs 1000`, and the like
// (multi/joined_team.h).

#include <mobius/mobius.h>

#include <cstdio>

#include "multi/joined_team.h"
#include "random/rank.h"

int main(int argc, char** argv) {
  random_program::Options options;
  mobius_test::JoinedTeam team(&argc, argv);
  options.on_other_team = static_cast<bool>(team);
  if (!random_program::parse(argc, argv, &options)) return 2;
  if (mob_init() != MOB_OK) {
    std::fprintf(stderr, "mob_init: %s\n", mob_last_error());
    return 1;
  }
  team.make();
  random_program::RankRunner(options, MOB_TEAM_WORLD).run();
  const mob_rank_t rank = mob_rank();
  team.free();
  random_program::check(mob_finalize(), "mob_finalize");
  if (rank == 0) {
    std::printf("%llu programs from seed %llu agree with the model\n",
                static_cast<unsigned long long>(options.programs),
                static_cast<unsigned long long>(options.seed));
  }
  return team.child_failed() ? 1 : 0;
}
