// SPDX-License-Identifier: BSD-3-Clause
#include "os/brief_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace mobius::os {
namespace {

TEST(BriefLock, ExcludesThreads) {
  BriefLock lock;
  uint64_t count = 0;  // no atomic: what the lock is for
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

// The holder gives up its processor again and again, so that who waits goes through all stages.
TEST(BriefLock, IsWaitedForWhileItsHolderDoesNotRun) {
  BriefLock lock;
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

}  // namespace
}  // namespace mobius::os
