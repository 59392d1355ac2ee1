// SPDX-License-Identifier: BSD-3-Clause
#include "random/actor_steps.h"
#include "random/lane.h"
#include "random/layout.h"
#include "random/program.h"

namespace random_program {

using mobius_test::Random;

Program generate(uint64_t seed, const Shape& shape) {
  Random random(seed);
  Program program{seed, shape, {}, {}};
  for (Actor a = 0; a < shape.actors(); ++a) program.own_context.push_back(random.chance(40));
  program.rounds.resize(random.between(1, 3));
  Numbers numbers{0, shape.threads, shape.threads, 0};
  std::vector<LaneBuilder> lanes;
  for (int lane = 0; lane < shape.threads; ++lane) {
    lanes.emplace_back(random, program.shape, lane, numbers);
  }
  for (Round& round : program.rounds) {
    round.sync = static_cast<Sync>(random.below(kSyncs));
    round.segments = cut_memory(random, shape);
    const bool last = &round == &program.rounds.back();
    for (LaneBuilder& lane : lanes) round.lanes.push_back(lane.build(last));
    round.actors.resize(static_cast<size_t>(shape.actors()));
    std::vector<uint64_t> told(round.actors.size());
    std::vector<ActorBuilder> builders;
    for (Actor a = 0; a < shape.actors(); ++a) {
      builders.emplace_back(random, program.shape, round, a, told);
    }
    for (ActorBuilder& builder : builders) builder.build_before();
    for (ActorBuilder& builder : builders) builder.build_after();
  }
  return program;
}

}  // namespace random_program
