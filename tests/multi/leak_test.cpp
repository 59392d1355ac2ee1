// SPDX-License-Identifier: BSD-3-Clause

// Thousands of objects of each kind are made and freed: descriptors, mappings and shared memory are
// as before.

#include "fixture.h"
#include "leaks.h"

using mobius_test::barrier;
using mobius_test::rounds;
using mobius_test::Shared;

namespace {

template <typename Round>
void expect_no_leak(int count, Round round) {
  for (int i = 0; i < 20; ++i) round(i);  // allocates what is allocated once
  barrier();
  const size_t mappings = mobius_test::mappings();
  const size_t descriptors = mobius_test::descriptors();
  const size_t shared = mobius_test::shared_bytes();
  barrier();
  for (int i = 0; i < count; ++i) round(i);
  barrier();
  EXPECT_LE(mobius_test::mappings(), mappings + 4);
  EXPECT_LE(mobius_test::descriptors(), descriptors + mobius_test::watch_descriptors());
  EXPECT_LE(mobius_test::shared_bytes(), shared);
  barrier();
}

}  // namespace

TEST(Leaks, Allocations) {
  expect_no_leak(rounds(10'000, 100), [](int i) {
    const Shared memory(static_cast<size_t>(1 + i % 9000));
    EXPECT_EQ(mob_put1(mob_rank(), memory.at(mob_rank()), 1), MOB_OK);
  });
}

TEST(Leaks, Teams) {
  expect_no_leak(rounds(2'000, 50), [](int i) {
    mob_team_t team = MOB_TEAM_NONE;
    EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() % (1 + i % 3), 0, &team), MOB_OK);
    EXPECT_EQ(mob_team_free(team), MOB_OK);
  });
}

TEST(Leaks, CountersAndContexts) {
  expect_no_leak(rounds(10'000, 1'000), [](int) {
    mob_counter_t counter = nullptr;
    mob_context_t context = nullptr;
    EXPECT_EQ(mob_counter_create(&counter), MOB_OK);
    EXPECT_EQ(mob_context_create(&context), MOB_OK);
    EXPECT_EQ(mob_counter_free(counter), MOB_OK);
    EXPECT_EQ(mob_context_free(context), MOB_OK);
  });
}

TEST(Leaks, FailedAllocations) {
  expect_no_leak(rounds(500, 20), [](int) {
    mob_mem_t mem = nullptr;
    const bool wrong = mob_rank() == mob_size() - 1;
    EXPECT_NE(mob_mem_alloc(wrong ? SIZE_MAX / 2 : 1 << 20, &mem), MOB_OK);
  });
}
