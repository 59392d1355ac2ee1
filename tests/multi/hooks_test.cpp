// SPDX-License-Identifier: BSD-3-Clause

// The promises that operations keep when a hook reorders them, and that it does reorder. Without
// hooks the same tests hold trivially.

#include <cstdlib>
#include <string_view>
#include <vector>

#include "fixture.h"
#include "serve.h"

using mobius_test::barrier;
using mobius_test::reorders;
using mobius_test::right_of;
using mobius_test::Shared;

namespace {

constexpr size_t kWords = 64;
constexpr size_t kHookedBytes = kWords * sizeof(uint64_t);

TEST(Hooks, StartedTransfersArePendingUntilSomebodyWaits) {
  const Shared memory(kHookedBytes);
  const uint64_t value = 1;
  mob_handle_t handle = MOB_HANDLE_DONE;
  EXPECT_EQ(mob_put_nb(right_of(mob_rank()), memory.at(right_of(mob_rank())), &value, 8, &handle),
            MOB_OK);
  EXPECT_EQ(handle != MOB_HANDLE_DONE, reorders());
  EXPECT_EQ(mob_wait(&handle), MOB_OK) << mob_last_error();
  EXPECT_EQ(handle, MOB_HANDLE_DONE);
  barrier();
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(memory.local()), 1u);
  barrier();
}

TEST(Hooks, PollingCarriesOutStartedOperations) {
  const Shared memory(kHookedBytes);
  const uint64_t value = 1;
  EXPECT_EQ(mob_put_nbi(mob_rank(), memory.local(), &value, 8), MOB_OK);
  uint64_t seen = 0;
  for (int poll = 0; poll < 1000 && seen == 0; ++poll) {
    EXPECT_EQ(mob_poll(), MOB_OK);
    EXPECT_EQ(mob_get8(mob_rank(), memory.local(), &seen), MOB_OK);
  }
  EXPECT_EQ(seen, 1u);
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  barrier();
}

TEST(Hooks, FenceComesBetweenOperationsBeforeAndAfter) {
  const Shared memory(kHookedBytes + 8);
  const mob_rank_t target = right_of(mob_rank());
  auto* words = reinterpret_cast<uint64_t*>(memory.local());
  std::vector<uint64_t> values(kWords);
  for (uint64_t round = 1; round <= 50; ++round) {
    for (size_t i = 0; i < kWords; ++i) {
      values[i] = round * 1000 + i;
      EXPECT_EQ(mob_put_nbi(target, memory.at(target, i * 8), &values[i], 8), MOB_OK);
    }
    EXPECT_EQ(mob_fence(), MOB_OK);
    EXPECT_EQ(mob_put8(target, memory.at(target, kHookedBytes), round), MOB_OK);
    uint64_t seen = 0;
    while (seen != round) {
      mobius_test::serve_other_hosts();
      EXPECT_EQ(mob_get8(mob_rank(), memory.local() + kHookedBytes, &seen), MOB_OK);
    }
    for (size_t i = 0; i < kWords; ++i) EXPECT_EQ(words[i], round * 1000 + i);
    barrier();
  }
}

TEST(Hooks, UpdatesOfWordsComeAfterStartedOperations) {
  const Shared memory(kHookedBytes);
  const mob_rank_t self = mob_rank();
  uint64_t old = 0;
  for (uint64_t round = 1; round <= 20; ++round) {
    EXPECT_EQ(mob_put_nbi(self, memory.local(), &round, 8), MOB_OK);
    EXPECT_EQ(mob_fetch_add8(self, memory.local(), 1, &old), MOB_OK);
    EXPECT_EQ(old, round);
  }
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  barrier();
}

TEST(Hooks, DescriptionsMayBeReusedAndCountersAreTold) {
  const Shared memory(kHookedBytes);
  const mob_rank_t target = right_of(mob_rank());
  mob_counter_t done = nullptr;
  EXPECT_EQ(mob_counter_create(&done), MOB_OK);
  std::vector<uint64_t> values(kWords);
  for (size_t i = 0; i < kWords; ++i) values[i] = i + 1;
  for (size_t i = 0; i < kWords; i += 2) {
    void* remotes[] = {memory.at(target, i * 8), memory.at(target, i * 8 + 8)};
    void* locals[] = {&values[i], &values[i + 1]};
    mob_transfer_t transfer{};
    transfer.kind = MOB_PUT;
    transfer.shape = MOB_PIECES;
    transfer.rank = target;
    transfer.bytes = 8;
    transfer.count = 2;
    transfer.remotes = remotes;
    transfer.locals = locals;
    transfer.completion_counter = done;
    EXPECT_EQ(mob_transfer_nbi(&transfer), MOB_OK) << mob_last_error();
    remotes[0] = remotes[1] = nullptr;
    locals[0] = locals[1] = nullptr;
  }
  EXPECT_EQ(mob_counter_wait(done, kWords / 2, nullptr), MOB_OK) << mob_last_error();
  barrier();
  const auto* words = reinterpret_cast<const uint64_t*>(memory.local());
  for (size_t i = 0; i < kWords; ++i) EXPECT_EQ(words[i], i + 1);
  EXPECT_EQ(mob_counter_free(done), MOB_OK);
  barrier();
}

}  // namespace
