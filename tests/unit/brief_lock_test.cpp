// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/brief_lock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "shared_processes.h"

namespace mobius::os {
namespace {

using mobius_test::Children;
using mobius_test::SharedZeros;

struct BrieflyGuarded {
  BriefLockWord lock;
  std::atomic<uint32_t> waiting;
  std::atomic<uint32_t> deaths;  // found by a waiter
  // Not atomic: only the lock keeps these equal.
  uint64_t first;
  uint64_t second;
};

class NobodyDies : public OwnerProbe {
 public:
  bool is_dead(uint32_t) override { return false; }
};

class CountsDeaths : public OwnerProbe {
 public:
  CountsDeaths(std::atomic<uint32_t>& deaths, pid_t pid, uint32_t owner)
      : deaths_(deaths), pid_(pid), owner_(owner) {}
  bool is_dead(uint32_t owner) override {
    if (owner != owner_ || kill(pid_, 0) == 0) return false;
    deaths_.fetch_add(1);
    return true;
  }

 private:
  std::atomic<uint32_t>& deaths_;
  const pid_t pid_;
  const uint32_t owner_;
};

void acquire(BriefLockWord& lock, uint32_t self, const WaitPolicy& policy, OwnerProbe& probe) {
  if (!try_lock(lock, self)) lock_contended(lock, self, policy, probe);
}

bool update_often(BrieflyGuarded& guarded, uint32_t self, const WaitPolicy& policy, int times) {
  NobodyDies probe;
  for (int i = 0; i < times; ++i) {
    acquire(guarded.lock, self, policy, probe);
    if (guarded.lock.owner.load() != self) return false;
    const uint64_t value = guarded.first;
    guarded.first = value + 1;
    if (guarded.second != value) return false;
    if (i % 64 == 0) std::this_thread::yield();  // lets other threads find the lock held
    guarded.second = value + 1;
    unlock(guarded.lock);
  }
  return true;
}

class BriefLock : public testing::TestWithParam<WaitPolicy> {};

TEST_P(BriefLock, ExcludesThreadsAndProcesses) {
  constexpr uint32_t kProcesses = 3;
  constexpr uint32_t kThreads = 2;
  constexpr int kTimes = 3'000;
  SharedZeros<BrieflyGuarded> guarded;
  Children children;
  for (uint32_t process = 0; process < kProcesses; ++process) {
    children.start([&, process] {
      std::atomic<bool> good{true};
      std::vector<std::thread> threads;
      for (uint32_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          const uint32_t self = 1 + process * kThreads + t;
          if (!update_often(*guarded, self, GetParam(), kTimes)) good = false;
        });
      }
      for (std::thread& thread : threads) thread.join();
      return good.load();
    });
  }
  children.expect_success();
  EXPECT_EQ(guarded->first, uint64_t{kProcesses} * kThreads * kTimes);
  EXPECT_EQ(guarded->second, guarded->first);
  EXPECT_EQ(guarded->lock.owner.load(), 0u);
}

TEST_P(BriefLock, AnOwnerThatWasKilledIsReplaced) {
  constexpr uint32_t kVictim = 7;
  constexpr uint32_t kWaiters = 4;
  SharedZeros<BrieflyGuarded> guarded;
  Children children;
  const pid_t victim = children.start([&] {
    if (!try_lock(guarded->lock, kVictim)) return false;
    return pause() == 0;  // only a signal ends it
  });
  while (guarded->lock.owner.load() != kVictim) std::this_thread::yield();
  for (uint32_t i = 0; i < kWaiters; ++i) {
    children.start([&, i] {
      guarded->waiting.fetch_add(1);
      CountsDeaths probe(guarded->deaths, victim, kVictim);
      acquire(guarded->lock, 10 + i, GetParam(), probe);
      ++guarded->first;
      const bool is_own = guarded->lock.owner.load() == 10 + i;
      unlock(guarded->lock);
      return is_own;
    });
  }
  while (guarded->waiting.load() != kWaiters) std::this_thread::yield();
  EXPECT_EQ(guarded->first, 0u);
  children.kill_one(victim);
  children.expect_success();
  EXPECT_GE(guarded->deaths.load(), 1u);
  EXPECT_EQ(guarded->first, kWaiters);
  EXPECT_EQ(guarded->lock.owner.load(), 0u);
}

// A thread may get the number of one that ended while it held the lock.
TEST_P(BriefLock, AnOwnerOfTheSameNameIsReplaced) {
  BriefLockWord word{5};
  NobodyDies probe;
  lock_contended(word, 5, GetParam(), probe);
  EXPECT_EQ(word.owner.load(), 5u);
  unlock(word);
  EXPECT_TRUE(try_lock(word, 6));
}

INSTANTIATE_TEST_SUITE_P(Policies, BriefLock,
                         testing::Values(WaitPolicy{.spin_ns = 20'000, .yields = 16},
                                         WaitPolicy{.spin_ns = 0, .yields = 0}));

}  // namespace
}  // namespace mobius::os
