// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/hybrid_lock.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "shared_processes.h"

namespace mobius::os {
namespace {

using mobius_test::Children;
using mobius_test::SharedZeros;

constexpr WaitPolicy kSpins{.spin_ns = 20'000, .yields = 16};
constexpr WaitPolicy kSleeps{.spin_ns = 0, .yields = 0};

struct Guarded {
  PaddedHybridLockWord lock;
  std::atomic<uint32_t> waiting;
  std::atomic<uint32_t> recovered;
  // Not atomic: only the lock keeps these equal.
  uint64_t first;
  uint64_t second;
};

bool enter_often(Guarded& guarded, uint32_t self, const WaitPolicy& policy, int times) {
  for (int i = 0; i < times; ++i) {
    if (lock(guarded.lock, self, policy) != LockResult::kAcquired) return false;
    if (lock_owner(guarded.lock) != self) return false;
    const uint64_t value = guarded.first;
    guarded.first = value + 1;
    if (guarded.second != value) return false;
    if (i % 64 == 0) std::this_thread::yield();  // lets other threads find the lock held
    guarded.second = value + 1;
    if (unlock(guarded.lock, self) != MOB_OK) return false;
  }
  return true;
}

class Dead : public OwnerProbe {
 public:
  explicit Dead(uint32_t owner) : dead_(owner) {}
  bool is_dead(uint32_t owner) override { return owner == dead_; }

 private:
  uint32_t dead_;
};

// Asks the kernel, as the processes of a job do.
class ProcessGone : public OwnerProbe {
 public:
  ProcessGone(pid_t pid, uint32_t owner) : pid_(pid), owner_(owner) {}
  bool is_dead(uint32_t owner) override { return owner == owner_ && kill(pid_, 0) != 0; }

 private:
  pid_t pid_;
  uint32_t owner_;
};

class GiveUp : public Watch {
 public:
  mob_status_t look() override { return MOB_ERR_PEER; }
};

class HybridLock : public testing::TestWithParam<WaitPolicy> {};

TEST_P(HybridLock, ExcludesThreadsAndProcesses) {
  constexpr uint32_t kProcesses = 4;
  constexpr uint32_t kThreads = 3;
  constexpr int kTimes = 3'000;
  SharedZeros<Guarded> guarded;
  Children children;
  for (uint32_t process = 0; process < kProcesses; ++process) {
    children.start([&, process] {
      std::atomic<bool> good{true};
      std::vector<std::thread> threads;
      for (uint32_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          const uint32_t self = 1 + process * kThreads + t;
          if (!enter_often(*guarded, self, GetParam(), kTimes)) good = false;
        });
      }
      for (std::thread& thread : threads) thread.join();
      return good.load();
    });
  }
  children.expect_success();
  EXPECT_EQ(guarded->first, uint64_t{kProcesses} * kThreads * kTimes);
  EXPECT_EQ(guarded->second, guarded->first);
  EXPECT_EQ(lock_owner(guarded->lock), 0u);
  EXPECT_TRUE(try_lock(guarded->lock, 1));
}

TEST_P(HybridLock, AnOwnerThatWasKilledIsReplacedOnce) {
  constexpr uint32_t kVictim = 7;
  constexpr uint32_t kWaiters = 5;
  SharedZeros<Guarded> guarded;
  Children children;
  const pid_t victim = children.start([&] {
    lock(guarded->lock, kVictim, GetParam());
    return pause() == 0;  // only a signal ends it
  });
  while (lock_owner(guarded->lock) != kVictim) std::this_thread::yield();
  for (uint32_t i = 0; i < kWaiters; ++i) {
    children.start([&, i] {
      const uint32_t self = 10 + i;
      guarded->waiting.fetch_add(1);
      ProcessGone probe(victim, kVictim);
      const LockResult result = lock(guarded->lock, self, GetParam(), &probe);
      if (result == LockResult::kRecovered) guarded->recovered.fetch_add(1);
      ++guarded->first;
      return (result == LockResult::kRecovered || result == LockResult::kAcquired) &&
             unlock(guarded->lock, self) == MOB_OK;
    });
  }
  while (guarded->waiting.load() != kWaiters) std::this_thread::yield();
  children.kill_one(victim);
  children.expect_success();
  EXPECT_EQ(guarded->recovered.load(), 1u);
  EXPECT_EQ(guarded->first, kWaiters);
  EXPECT_EQ(lock_owner(guarded->lock), 0u);
}

TEST_P(HybridLock, AWaiterThatWasKilledHoldsNobodyUp) {
  SharedZeros<Guarded> guarded;
  ASSERT_TRUE(try_lock(guarded->lock, 1));
  Children children;
  const pid_t victim = children.start([&] {
    guarded->waiting.fetch_add(1);
    lock(guarded->lock, 2, GetParam());
    return true;
  });
  children.start([&] {
    guarded->waiting.fetch_add(1);
    Dead probe(2);  // the victim may have got the lock handed over
    return lock(guarded->lock, 3, GetParam(), &probe) != LockResult::kGaveUp &&
           unlock(guarded->lock, 3) == MOB_OK;
  });
  while (guarded->waiting.load() != 2) std::this_thread::yield();
  children.kill_one(victim);
  EXPECT_EQ(unlock(guarded->lock, 1), MOB_OK);
  children.expect_success();
  EXPECT_EQ(lock_owner(guarded->lock), 0u);
}

uint32_t heir_of(const Guarded& guarded) {
  return static_cast<uint32_t>(guarded.lock.state.load() >> 32);
}

TEST_P(HybridLock, ALongWaiterIsHandedTheLock) {
  SharedZeros<Guarded> guarded;
  Children children;
  ASSERT_TRUE(try_lock(guarded->lock, 1));
  children.start([&] {
    if (lock(guarded->lock, 2, GetParam()) != LockResult::kAcquired) return false;
    while (guarded->waiting.load() == 0) std::this_thread::yield();
    return unlock(guarded->lock, 2) == MOB_OK;
  });
  while (heir_of(*guarded) != 2) std::this_thread::yield();
  EXPECT_EQ(unlock(guarded->lock, 1), MOB_OK);
  EXPECT_EQ(lock_owner(guarded->lock), 2u);
  EXPECT_FALSE(try_lock(guarded->lock, 1));
  EXPECT_EQ(unlock(guarded->lock, 1), MOB_ERR_STATE);
  guarded->waiting.store(1);
  children.expect_success();
  EXPECT_EQ(lock_owner(guarded->lock), 0u);
}

TEST_P(HybridLock, AnHeirThatWasKilledIsReplaced) {
  SharedZeros<Guarded> guarded;
  Children children;
  ASSERT_TRUE(try_lock(guarded->lock, 1));
  const pid_t victim = children.start([&] {
    lock(guarded->lock, 2, GetParam());
    return true;
  });
  while (heir_of(*guarded) != 2) std::this_thread::yield();
  children.kill_one(victim);
  EXPECT_EQ(unlock(guarded->lock, 1), MOB_OK);
  EXPECT_EQ(lock_owner(guarded->lock), 2u);
  Dead probe(2);
  EXPECT_EQ(lock(guarded->lock, 3, GetParam(), &probe), LockResult::kRecovered);
  EXPECT_EQ(unlock(guarded->lock, 3), MOB_OK);
  EXPECT_EQ(lock_owner(guarded->lock), 0u);
}

TEST_P(HybridLock, AWatchEndsTheWait) {
  PaddedHybridLockWord word{};
  GiveUp watch;
  ASSERT_TRUE(try_lock(word, 1));
  EXPECT_EQ(lock(word, 2, GetParam(), nullptr, &watch), LockResult::kGaveUp);
  EXPECT_EQ(lock_owner(word), 1u);
  EXPECT_EQ(unlock(word, 1), MOB_OK);
  EXPECT_EQ(word.state.load(), 0u);  // the waiter that gave up does not inherit
  EXPECT_EQ(lock(word, 2, GetParam(), nullptr, &watch), LockResult::kAcquired);
}

INSTANTIATE_TEST_SUITE_P(Policies, HybridLock,
                         testing::Values(kSleeps, WaitPolicy{.spin_ns = 0, .yields = 4}, kSpins));

TEST(HybridLockBadInput, AStrangerCannotUnlock) {
  HybridLockWord word{};
  EXPECT_EQ(unlock(word, 1), MOB_ERR_STATE);
  EXPECT_NE(std::string(mob_last_error()).find("nobody holds"), std::string::npos);
  ASSERT_TRUE(try_lock(word, 1));
  EXPECT_EQ(unlock(word, 2), MOB_ERR_STATE);
  EXPECT_NE(std::string(mob_last_error()).find("another"), std::string::npos);
  EXPECT_EQ(lock_owner(word), 1u);
  EXPECT_EQ(unlock(word, 1), MOB_OK);
  EXPECT_EQ(unlock(word, 1), MOB_ERR_STATE);
}

TEST(HybridLockBadInput, TheOwnerCannotLockAgain) {
  HybridLockWord word{};
  EXPECT_EQ(lock(word, kMaxLockUser, kSleeps), LockResult::kAcquired);
  EXPECT_EQ(lock(word, kMaxLockUser, kSleeps), LockResult::kHeldBySelf);
  EXPECT_FALSE(try_lock(word, kMaxLockUser));
  EXPECT_EQ(unlock(word, kMaxLockUser), MOB_OK);
  EXPECT_EQ(word.state.load(), 0u);
}

TEST(HybridLockBadInput, TryLockTakesTheLockOfADeadOwner) {
  constexpr uint32_t kGone = 7;
  HybridLockWord word{};
  Dead probe(kGone);
  ASSERT_TRUE(try_lock(word, kGone));
  EXPECT_EQ(try_lock(word, kGone, probe), LockResult::kHeldBySelf);
  EXPECT_EQ(try_lock(word, 8, probe), LockResult::kRecovered);
  EXPECT_EQ(try_lock(word, 9, probe), LockResult::kGaveUp);
  EXPECT_EQ(unlock(word, 8), MOB_OK);
  EXPECT_EQ(try_lock(word, 9, probe), LockResult::kAcquired);
}

TEST(HybridLockBadInput, TryLockTakesOnlyAFreeLock) {
  HybridLockWord word{};
  EXPECT_TRUE(try_lock(word, 1));
  EXPECT_FALSE(try_lock(word, 2));
  EXPECT_EQ(unlock(word, 1), MOB_OK);
  EXPECT_TRUE(try_lock(word, 2));
}

}  // namespace
}  // namespace mobius::os
