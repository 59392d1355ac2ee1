// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/biased_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "os/sync/asymmetric_fence.h"

namespace mobius::os {
namespace {

// A lock with the part that programs can inline.
class Lock : public mob_bias_t_, public BiasedLock {
 public:
  Lock() : mob_bias_t_{}, BiasedLock(static_cast<mob_bias_t_&>(*this)) {}
};

void use(BiasedLock& lock, uint32_t times) {
  for (uint32_t time = 0; time < times; ++time) const std::lock_guard guard(lock);
}

void use_elsewhere(BiasedLock& lock, uint32_t times = 1) {
  std::thread([&] { use(lock, times); }).join();
}

void exclude(BiasedLock& lock) {
  uint64_t count = 0;  // not atomic: the lock protects it
  constexpr uint64_t kTimes = 20'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t time = 0; time < kTimes; ++time) {
        const std::lock_guard guard(lock);
        count = count + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * kTimes);
}

// The holder yields its processor again and again, so that waiters go through all stages.
void be_waited_for(BiasedLock& lock) {
  std::atomic<bool> is_asked = false;
  bool is_done = false;
  lock.lock();
  std::thread other([&] {
    is_asked.store(true);
    const std::lock_guard guard(lock);
    EXPECT_TRUE(is_done);
  });
  while (!is_asked.load()) std::this_thread::yield();
  for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
  is_done = true;
  lock.unlock();
  other.join();
}

TEST(BiasedLock, ExcludesThreadsWithoutABias) {
  Lock lock;
  exclude(lock);
}

TEST(BiasedLock, IsWaitedForWhileItsHolderDoesNotRun) {
  Lock lock;
  be_waited_for(lock);
}

class Biased : public testing::Test {
 protected:
  void SetUp() override {
    prepare_heavy_fences();
    if (!has_heavy_fences()) GTEST_SKIP() << "membarrier(2) is refused, or hidden from a sanitizer";
    use(lock, BiasedLock::kFirstStreak);
    ASSERT_TRUE(lock.is_biased());
  }
  Lock lock;
};

TEST_F(Biased, IsItAfterOneThreadCameOften) {
  Lock other;
  use(other, BiasedLock::kFirstStreak - 1);
  EXPECT_FALSE(other.is_biased());
  use(other, 1);
  EXPECT_TRUE(other.is_biased());
}

TEST_F(Biased, ExcludesThreads) {
  std::atomic<bool> is_over = false;
  uint64_t count = 0;
  uint64_t others = 0;
  // The other threads come seldom enough for this thread to regain the bias again and again.
  std::thread other([&] {
    while (!is_over.load()) {
      {
        const std::lock_guard guard(lock);
        count = count + 1;
        ++others;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  uint64_t own = 0;
  int times_biased = 0;
  for (bool was_biased = false; times_biased < 200; ++own) {
    const std::lock_guard guard(lock);
    count = count + 1;
    if (lock.is_biased() && !was_biased) ++times_biased;
    was_biased = lock.is_biased();
  }
  is_over.store(true);
  other.join();
  EXPECT_EQ(count, own + others);
}

TEST_F(Biased, ExcludesManyThreads) { exclude(lock); }

TEST_F(Biased, IsWaitedForWhileItsHolderDoesNotRun) { be_waited_for(lock); }

TEST_F(Biased, EndsWhenAnotherThreadComes) {
  use_elsewhere(lock);
  EXPECT_FALSE(lock.is_biased());
}

TEST_F(Biased, ComesBackLaterWhereItDidNotPay) {
  use_elsewhere(lock);
  use(lock, BiasedLock::kFirstStreak);
  EXPECT_FALSE(lock.is_biased());
  use(lock, 3 * BiasedLock::kFirstStreak);
  EXPECT_TRUE(lock.is_biased());
  use(lock, BiasedLock::kPays);
  use_elsewhere(lock);
  use(lock, BiasedLock::kFirstStreak);
  EXPECT_TRUE(lock.is_biased());
}

TEST_F(Biased, PaysByWhatItsOwnerHasYetToCount) {
  lock.further = BiasedLock::kPays;
  use_elsewhere(lock);
  use(lock, BiasedLock::kFirstStreak);
  EXPECT_TRUE(lock.is_biased());
}

// Another thread could meet a late store of the first one.
TEST_F(Biased, IsNeverThatOfAnotherThread) {
  std::thread([&] {
    use(lock, 100 * BiasedLock::kFirstStreak);
    EXPECT_FALSE(lock.is_biased());
  }).join();
}

}  // namespace
}  // namespace mobius::os
