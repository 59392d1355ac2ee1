// SPDX-License-Identifier: BSD-3-Clause

// Locks in shared memory and mutexes of a team: exclusion between ranks and between threads, and
// refused calls.

#include <mobius/lock.h>

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_text;
using mobius_test::first_of_host;
using mobius_test::right_of;
using mobius_test::same_host;
using mobius_test::Shared;

namespace {

constexpr int kTimes = 500;

mob_lock_t* lock_at(const Shared& memory, mob_rank_t rank, size_t offset = 0) {
  void* pointer = nullptr;
  EXPECT_EQ(mob_ptr(rank, memory.at(rank, offset), &pointer), MOB_OK) << mob_last_error();
  return static_cast<mob_lock_t*>(pointer);
}

// Two counters that only a lock keeps equal.
struct Guarded {
  uint64_t first;
  uint64_t second;
};

int enter(Guarded* guarded) {
  const uint64_t value = guarded->first;
  guarded->first = value + 1;
  const int wrong = guarded->second == value ? 0 : 1;
  guarded->second = value + 1;
  return wrong;
}

// The same from another rank, on the counters at `address` in `rank`.
int enter(mob_rank_t rank, unsigned char* address) {
  unsigned char* const second = address + offsetof(Guarded, second);
  uint64_t value = 0;
  uint64_t other = 0;
  int wrong = mob_get8(rank, address, &value) == MOB_OK ? 0 : 1;
  wrong += mob_put8(rank, address, value + 1) == MOB_OK ? 0 : 1;
  wrong += mob_get8(rank, second, &other) == MOB_OK && other == value ? 0 : 1;
  return wrong + (mob_put8(rank, second, value + 1) == MOB_OK ? 0 : 1);
}

}  // namespace

// Ranks of one host, because the locks lie in shared memory.
TEST(Lock, ExcludesThreadsOfAllRanks) {
  constexpr int kThreads = 3;
  const Shared memory(256);
  mob_lock_t* const lock = lock_at(memory, first_of_host());
  auto* const guarded = reinterpret_cast<Guarded*>(lock_at(memory, first_of_host(), 128));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        int recovered = 5;
        if (mob_lock(lock, &recovered) != MOB_OK || recovered != 0) ++wrong;
        wrong += enter(guarded);
        if (mob_unlock(lock) != MOB_OK) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  barrier();
  EXPECT_EQ(guarded->first, static_cast<uint64_t>(mob_host_size()) * kThreads * kTimes);
  barrier();
}

TEST(Lock, TryingTakesAFreeLockOnly) {
  const Shared memory(64);
  mob_lock_t* const own = lock_at(memory, mob_rank());
  int acquired = 7;
  EXPECT_EQ(mob_trylock(own, &acquired, nullptr), MOB_OK);
  EXPECT_EQ(acquired, 1);
  barrier();
  if (mob_size() > 1 && same_host(right_of(mob_rank()))) {
    int recovered = 7;
    EXPECT_EQ(mob_trylock(lock_at(memory, right_of(mob_rank())), &acquired, &recovered), MOB_OK);
    EXPECT_EQ(acquired, 0);
    EXPECT_EQ(recovered, 0);
  }
  barrier();
  EXPECT_EQ(mob_unlock(own), MOB_OK);
  barrier();
}

// In memory that its owner moved, to which each local peer has another pointer.
TEST(Lock, ExcludesInMovedMemory) {
  if (!mobius_test::on_team.is_one_job) GTEST_SKIP() << "other jobs get no pointer to it";
  constexpr size_t kPage = 4096;
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  mob_exposed_t exposed = nullptr;
  EXPECT_EQ(mob_expose(page, kPage, MOB_EXPOSE_REMAP, &exposed), MOB_OK) << mob_last_error();
  const Shared addresses(sizeof(uint64_t));
  std::memcpy(addresses.local(), &page, sizeof page);
  barrier();
  uint64_t address = 0;
  EXPECT_EQ(mob_get8(first_of_host(), addresses.at(first_of_host()), &address), MOB_OK);
  void* here = nullptr;
  EXPECT_EQ(mob_ptr(first_of_host(), reinterpret_cast<void*>(address), &here), MOB_OK)
      << mob_last_error();
  auto* const lock = static_cast<mob_lock_t*>(here);
  auto* const guarded = reinterpret_cast<Guarded*>(static_cast<unsigned char*>(here) + 128);
  int wrong = 0;
  for (int i = 0; i < kTimes; ++i) {
    wrong += mob_lock(lock, nullptr) != MOB_OK;
    wrong += enter(guarded);
    wrong += mob_unlock(lock) != MOB_OK;
  }
  EXPECT_EQ(wrong, 0) << mob_last_error();
  barrier();
  EXPECT_EQ(guarded->first, static_cast<uint64_t>(mob_host_size()) * kTimes);
  barrier();
  EXPECT_EQ(mob_withdraw(exposed), MOB_OK) << mob_last_error();
  EXPECT_EQ(munmap(page, kPage), 0);
}

TEST(LockBadInput, EveryArgumentAndState) {
  const Shared memory(64);
  mob_lock_t* const lock = lock_at(memory, mob_rank());
  auto* const odd = reinterpret_cast<mob_lock_t*>(reinterpret_cast<unsigned char*>(lock) + 4);
  mob_lock_t private_lock = {0};
  int acquired = 9;
  const struct {
    mob_lock_t* lock;
    mob_status_t status;
    const char* text;
  } cases[] = {{nullptr, MOB_ERR_ARGUMENT, "null"},
               {odd, MOB_ERR_ARGUMENT, "aligned"},
               {&private_lock, MOB_ERR_RANGE, "not in shared memory"},
               {lock + 8, MOB_ERR_RANGE, "not in shared memory"}};
  for (const auto& c : cases) {
    EXPECT_EQ(mob_lock(c.lock, nullptr), c.status);
    expect_text("mob_lock", c.text);
    EXPECT_EQ(mob_trylock(c.lock, &acquired, nullptr), c.status);
    expect_text("mob_trylock", c.text);
    EXPECT_EQ(mob_unlock(c.lock), c.status);
    expect_text("mob_unlock", c.text);
  }
  EXPECT_EQ(mob_trylock(lock, nullptr, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_unlock(lock), MOB_ERR_STATE);
  expect_text("mob_unlock", "nobody holds it");
  EXPECT_EQ(mob_lock(lock, nullptr), MOB_OK);
  EXPECT_EQ(mob_lock(lock, nullptr), MOB_ERR_STATE);
  expect_text("mob_lock", "holds it already");
  EXPECT_EQ(mob_trylock(lock, &acquired, nullptr), MOB_ERR_STATE);
  EXPECT_EQ(acquired, 9);
  std::thread([&] {
    EXPECT_EQ(mob_unlock(lock), MOB_ERR_STATE);
    expect_text("mob_unlock", "does not hold it");
  }).join();
  barrier();
  if (mob_size() > 1 && same_host(right_of(mob_rank()))) {
    EXPECT_EQ(mob_unlock(lock_at(memory, right_of(mob_rank()))), MOB_ERR_STATE);
    expect_text("mob_unlock", "rank " + std::to_string(right_of(mob_rank())));
  }
  barrier();
  EXPECT_EQ(mob_unlock(lock), MOB_OK);
}

TEST(Mutexes, EachExcludesAllRanks) {
  const Shared memory(sizeof(Guarded) * 4);
  const auto own_count = static_cast<size_t>((mob_rank() + 1) % 3);  // 1, 2, 0, 1, …
  mob_mutexes_t mutexes = nullptr;
  EXPECT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, own_count, &mutexes), MOB_OK) << mob_last_error();
  int wrong = 0;
  for (int i = 0; i < kTimes; ++i) {
    const mob_rank_t host = i % mob_size();
    for (size_t index = 0; index < static_cast<size_t>((host + 1) % 3); ++index) {
      wrong += mob_mutex_lock(mutexes, index, host, nullptr) == MOB_OK ? 0 : 1;
      wrong += enter(host, memory.at(host, index * sizeof(Guarded)));
      wrong += mob_mutex_unlock(mutexes, index, host) == MOB_OK ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
}

TEST(Mutexes, OfATeam) {
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() % 2, 0, &team), MOB_OK);
  mob_mutexes_t mutexes = nullptr;
  EXPECT_EQ(mob_mutexes_create(team, 1, &mutexes), MOB_OK) << mob_last_error();
  int acquired = 0;
  EXPECT_EQ(mob_mutex_trylock(mutexes, 0, mob_rank(), &acquired, nullptr), MOB_OK);
  EXPECT_EQ(acquired, 1);
  EXPECT_EQ(mob_mutex_unlock(mutexes, 0, mob_rank()), MOB_OK);
  if (mob_size() > 1) {
    const mob_rank_t of_the_other_team = mob_rank() % 2 == 0 ? 1 : 0;
    EXPECT_EQ(mob_mutex_lock(mutexes, 0, of_the_other_team, nullptr), MOB_ERR_RANK);
    expect_text("mob_mutex_lock", "is not in the team");
  }
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_team_free(team), MOB_OK);
}

TEST(MutexesBadInput, EveryArgumentAndState) {
  const mob_rank_t me = mob_rank();
  mob_mutexes_t mutexes = nullptr;
  int acquired = 9;
  // One member's error is an error of all.
  EXPECT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, 1, me == 0 ? nullptr : &mutexes),
            me == 0 ? MOB_ERR_ARGUMENT : MOB_ERR_PEER);
  EXPECT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, me == 0 ? SIZE_MAX : 1, &mutexes),
            me == 0 ? MOB_ERR_RANGE : MOB_ERR_PEER);
  EXPECT_EQ(mutexes, nullptr);
  EXPECT_EQ(mob_mutexes_create(MOB_TEAM_NONE, 1, &mutexes), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes), MOB_OK);
  for (const mob_rank_t rank : {-1, mob_size(), 1 << 30}) {
    EXPECT_EQ(mob_mutex_lock(mutexes, 0, rank, nullptr), MOB_ERR_RANK);
    EXPECT_EQ(mob_mutex_trylock(mutexes, 0, rank, &acquired, nullptr), MOB_ERR_RANK);
    EXPECT_EQ(mob_mutex_unlock(mutexes, 0, rank), MOB_ERR_RANK);
  }
  for (const size_t index : {size_t{1}, SIZE_MAX}) {
    EXPECT_EQ(mob_mutex_lock(mutexes, index, me, nullptr), MOB_ERR_RANGE);
    expect_text("mob_mutex_lock", "hosts 1");
    EXPECT_EQ(mob_mutex_trylock(mutexes, index, me, &acquired, nullptr), MOB_ERR_RANGE);
    EXPECT_EQ(mob_mutex_unlock(mutexes, index, me), MOB_ERR_RANGE);
  }
  EXPECT_EQ(mob_mutex_trylock(mutexes, 0, me, nullptr, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_mutex_unlock(mutexes, 0, me), MOB_ERR_STATE);
  EXPECT_EQ(mob_mutex_lock(mutexes, 0, me, nullptr), MOB_OK);
  EXPECT_EQ(mob_mutex_lock(mutexes, 0, me, nullptr), MOB_ERR_STATE);
  // A mutex that is held cannot be freed.
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_ERR_STATE);
  EXPECT_EQ(mob_mutex_unlock(mutexes, 0, me), MOB_OK);
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_mutexes_free(mutexes), MOB_ERR_HANDLE);
  expect_text("mob_mutexes_free", "not live");
  EXPECT_EQ(mob_mutex_lock(mutexes, 0, me, nullptr), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_mutex_trylock(mutexes, 0, me, &acquired, nullptr), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_mutex_unlock(nullptr, 0, me), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_mutexes_free(nullptr), MOB_OK);
  EXPECT_EQ(acquired, 9);
}
