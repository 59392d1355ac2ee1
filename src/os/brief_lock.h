// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A lock between threads of one process for what is mostly over in nanoseconds and mostly not
// contended: acquired by one atomic instruction and released by a plain store, half of what a mutex
// costs. Who finds it held spins, yields, then sleeps for moments; so nobody waits for long in it,
// and nothing that must be quick is behind it when somebody might.

#include <sched.h>
#include <time.h>

#include <atomic>

#include "os/futex.h"

namespace mobius::os {

// Not reentrant. Meets BasicLockable, for std::lock_guard.
class BriefLock {
 public:
  void lock() {
    // Acquire pairs with the release in unlock().
    if (!held_.exchange(true, std::memory_order_acquire)) [[likely]] {
      return;
    }
    lock_contended();
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  [[gnu::noinline]] void lock_contended() {
    constexpr int kSpins = 100;
    constexpr int kYields = 20;
    constexpr timespec kMoment{0, 20'000};
    for (int looks = 0;; ++looks) {
      if (!held_.load(std::memory_order_relaxed) &&
          !held_.exchange(true, std::memory_order_acquire)) {
        return;
      }
      if (looks < kSpins) {
        relax();
      } else if (looks < kSpins + kYields) {
        sched_yield();
      } else {
        nanosleep(&kMoment, nullptr);
      }
    }
  }

  std::atomic<bool> held_ = false;
};

}  // namespace mobius::os
