// SPDX-License-Identifier: BSD-3-Clause

// Shared and exclusive access to members of a team: exclusion, and refused calls.

#include "access.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "closed.h"
#include "fixture.h"

using mobius_test::Access;
using mobius_test::barrier;
using mobius_test::expect_text;
using mobius_test::right_of;
using mobius_test::Shared;

// Writers keep two words of rank 0 equal; readers never see them differ.
TEST(Access, ExclusiveKeepsOutReadersAndWriters) {
  constexpr int kThreads = 2;
  constexpr uint64_t kTimes = 200;
  const Shared memory(128);
  const Access access;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      uint64_t first = 0;
      uint64_t second = 0;
      for (uint64_t i = 0; i < kTimes; ++i) {
        const bool writes = i % 3 == 0;
        int bad = mob_access_lock(access, 0, writes ? MOB_EXCLUSIVE : MOB_SHARED, nullptr);
        bad |= mob_get8(0, memory.at(0), &first) | mob_get8(0, memory.at(0, 64), &second);
        if (first != second) ++wrong;
        if (writes) {
          bad |= mob_put8(0, memory.at(0), first + 1) | mob_put8(0, memory.at(0, 64), first + 1);
        }
        bad |= mob_access_unlock(access, 0);
        if (bad != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  barrier();
  uint64_t total = 0;
  EXPECT_EQ(mob_get8(0, memory.at(0), &total), MOB_OK);
  EXPECT_EQ(total, static_cast<uint64_t>(mob_size()) * kThreads * ((kTimes + 2) / 3));
  barrier();
}

TEST(Access, SharedExcludesExclusiveAlone) {
  const Access access;
  const mob_rank_t me = mob_rank();
  const mob_rank_t next = right_of(me);
  int acquired = 7;
  EXPECT_EQ(mob_access_lock_all(access, nullptr), MOB_OK);
  barrier();
  EXPECT_EQ(mob_access_trylock(access, next, MOB_SHARED, &acquired, nullptr), MOB_OK);
  EXPECT_EQ(acquired, 1);
  EXPECT_EQ(mob_access_unlock(access, next), MOB_OK);
  barrier();
  int recovered = 7;
  EXPECT_EQ(mob_access_trylock(access, next, MOB_EXCLUSIVE, &acquired, &recovered), MOB_OK);
  EXPECT_EQ(acquired, 0);
  EXPECT_EQ(recovered, 0);
  barrier();
  EXPECT_EQ(mob_access_unlock_all(access), MOB_OK);
  barrier();
  EXPECT_EQ(mob_access_trylock(access, me, MOB_EXCLUSIVE, &acquired, nullptr), MOB_OK);
  EXPECT_EQ(acquired, 1);
  barrier();
  if (next != me) {
    EXPECT_EQ(mob_access_trylock(access, next, MOB_SHARED, &acquired, nullptr), MOB_OK);
    EXPECT_EQ(acquired, 0);
    EXPECT_EQ(mob_access_trylock(access, next, MOB_EXCLUSIVE, &acquired, nullptr), MOB_OK);
    EXPECT_EQ(acquired, 0);
  }
  barrier();
  EXPECT_EQ(mob_access_unlock(access, me), MOB_OK);
  barrier();
}

// All ranks want access to all members at once, in both modes.
TEST(Access, AllMembersAtOnceAndOneByOne) {
  const Shared memory(64);
  const Access access;
  int wrong = 0;
  for (int i = 0; i < 100; ++i) {
    const mob_rank_t target = (mob_rank() + i) % mob_size();
    uint64_t value = 0;
    wrong += mob_access_lock(access, target, MOB_EXCLUSIVE, nullptr) != MOB_OK;
    wrong += mob_get8(target, memory.at(target), &value) != MOB_OK;
    wrong += mob_put8(target, memory.at(target), value + 1) != MOB_OK;
    wrong += mob_access_unlock(access, target) != MOB_OK;
    wrong += mob_access_lock_all(access, nullptr) != MOB_OK;
    wrong += mob_access_unlock_all(access) != MOB_OK;
  }
  EXPECT_EQ(wrong, 0);
  barrier();
  uint64_t total = 0;
  for (mob_rank_t r = 0; r < mob_size(); ++r) {
    uint64_t value = 0;
    EXPECT_EQ(mob_get8(r, memory.at(r), &value), MOB_OK);
    total += value;
  }
  EXPECT_EQ(total, static_cast<uint64_t>(mob_size()) * 100);
  barrier();
}

// Gaining access, or failing to, does not report errors of earlier operations.
TEST(Access, LeavesEarlierErrorsToTheFlush) {
  if (mob_size() < 2) GTEST_SKIP() << "takes two processes";
  const Access access;
  const mobius_test::Closed closed;
  const mob_rank_t me = mob_rank();
  int acquired = 7;
  EXPECT_EQ(mob_access_lock(access, me, MOB_SHARED, nullptr), MOB_OK);
  closed.start_failing();
  EXPECT_EQ(mob_access_trylock(access, me, MOB_EXCLUSIVE, &acquired, nullptr), MOB_OK)
      << mob_last_error();
  EXPECT_EQ(acquired, 0);
  EXPECT_EQ(mob_flush_all(), MOB_ERR_RANGE);
  EXPECT_EQ(mob_access_unlock(access, me), MOB_OK) << mob_last_error();
  // Behind a writer that leaves once the reader has begun to wait.
  EXPECT_EQ(mob_access_lock(access, me, MOB_EXCLUSIVE, nullptr), MOB_OK);
  std::atomic<bool> asks = false;
  std::thread reader([&] {
    mob_context_t context = nullptr;
    EXPECT_EQ(mob_context_create(&context), MOB_OK);
    EXPECT_EQ(mob_context_use(context), MOB_OK);
    closed.start_failing();
    asks = true;
    EXPECT_EQ(mob_access_lock(access, me, MOB_SHARED, nullptr), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_flush_all(), MOB_ERR_RANGE);
    EXPECT_EQ(mob_access_unlock(access, me), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_context_free(context), MOB_OK);
  });
  while (!asks) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(mob_access_unlock(access, me), MOB_OK) << mob_last_error();
  reader.join();
  barrier();
}

TEST(AccessBadInput, EveryArgumentAndState) {
  const mob_rank_t me = mob_rank();
  mob_access_t access = nullptr;
  int acquired = 9;
  EXPECT_EQ(mob_access_create(MOB_TEAM_NONE, &access), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_create(MOB_TEAM_WORLD, me == 0 ? nullptr : &access),
            me == 0 ? MOB_ERR_ARGUMENT : MOB_ERR_PEER);
  EXPECT_EQ(access, nullptr);
  EXPECT_EQ(mob_access_free(nullptr), MOB_OK);
  EXPECT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK);
  for (const mob_rank_t rank : {-1, mob_size(), 1 << 30}) {
    EXPECT_EQ(mob_access_lock(access, rank, MOB_SHARED, nullptr), MOB_ERR_RANK);
    EXPECT_EQ(mob_access_trylock(access, rank, MOB_SHARED, &acquired, nullptr), MOB_ERR_RANK);
    EXPECT_EQ(mob_access_unlock(access, rank), MOB_ERR_RANK);
  }
  for (const int mode : {-1, 2, 1000}) {
    const auto unknown = static_cast<mob_access_mode_t>(mode);
    EXPECT_EQ(mob_access_lock(access, me, unknown, nullptr), MOB_ERR_ARGUMENT);
    expect_text("mob_access_lock", "MOB_EXCLUSIVE");
    EXPECT_EQ(mob_access_trylock(access, me, unknown, &acquired, nullptr), MOB_ERR_ARGUMENT);
  }
  EXPECT_EQ(mob_access_trylock(access, me, MOB_SHARED, nullptr, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_access_unlock(access, me), MOB_ERR_STATE);
  expect_text("mob_access_unlock", "mob_access_lock()");
  EXPECT_EQ(mob_access_unlock_all(access), MOB_ERR_STATE);
  barrier();
  EXPECT_EQ(mob_access_lock(access, me, MOB_EXCLUSIVE, nullptr), MOB_OK);
  EXPECT_EQ(mob_access_lock(access, me, MOB_EXCLUSIVE, nullptr), MOB_ERR_STATE);
  expect_text("mob_access_lock", "already");
  EXPECT_EQ(mob_access_lock(access, me, MOB_SHARED, nullptr), MOB_ERR_STATE);
  EXPECT_EQ(mob_access_trylock(access, me, MOB_SHARED, &acquired, nullptr), MOB_ERR_STATE);
  EXPECT_EQ(mob_access_lock_all(access, nullptr), MOB_ERR_STATE);
  std::thread([&] { EXPECT_EQ(mob_access_unlock(access, me), MOB_ERR_STATE); }).join();
  EXPECT_EQ(mob_access_free(access), MOB_ERR_STATE);
  EXPECT_EQ(mob_access_unlock(access, me), MOB_OK);
  barrier();
  // One member with shared access keeps the object alive.
  if (me == 0) {
    EXPECT_EQ(mob_access_lock(access, 0, MOB_SHARED, nullptr), MOB_OK);
  }
  EXPECT_EQ(mob_access_free(access), me == 0 ? MOB_ERR_STATE : MOB_ERR_PEER);
  if (me == 0) {
    EXPECT_EQ(mob_access_unlock(access, 0), MOB_OK);
  }
  EXPECT_EQ(mob_access_free(access), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_access_free(access), MOB_ERR_HANDLE);
  expect_text("mob_access_free", "not a live access");
  EXPECT_EQ(mob_access_lock(access, me, MOB_SHARED, nullptr), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_trylock(access, me, MOB_SHARED, &acquired, nullptr), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_unlock(access, me), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_lock_all(access, nullptr), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_unlock_all(access), MOB_ERR_HANDLE);
  EXPECT_EQ(acquired, 9);
}
