// SPDX-License-Identifier: BSD-3-Clause
#include "fixture.h"

using mobius_test::Shared;

TEST(Barrier, SeparatesPhasesOfAllRanks) {
  constexpr uint64_t kPhases = 200;
  const Shared phases(sizeof(uint64_t) * static_cast<size_t>(mob_size()));
  const size_t own = sizeof(uint64_t) * static_cast<size_t>(mob_rank());
  int wrong = 0;
  for (uint64_t phase = 1; phase <= kPhases; ++phase) {
    for (mob_rank_t r = 0; r < mob_size(); ++r) {
      if (mob_put8(r, phases.at(r, own), phase) != MOB_OK) ++wrong;
    }
    mobius_test::barrier();
    const auto* seen = reinterpret_cast<const uint64_t*>(phases.local());
    for (mob_rank_t r = 0; r < mob_size(); ++r) wrong += seen[r] == phase ? 0 : 1;
    mobius_test::barrier();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Barrier, CompletesPutsOfAnySize) {
  constexpr size_t kBytes = 100'000;
  const Shared memory(kBytes);
  for (int round = 0; round < 3; ++round) {
    const auto data = mobius_test::patterned(kBytes, mob_rank(), round);
    const mob_rank_t target = mobius_test::right_of(mob_rank());
    EXPECT_EQ(mob_put(target, memory.at(target), data.data(), kBytes), MOB_OK);
    mobius_test::barrier();
    const auto expected = mobius_test::patterned(kBytes, mobius_test::left_of(mob_rank()), round);
    EXPECT_TRUE(mobius_test::holds(memory.local(), expected, kBytes)) << "round " << round;
    mobius_test::barrier();
  }
}
