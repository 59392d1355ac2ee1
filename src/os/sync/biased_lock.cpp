// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/biased_lock.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "os/sync/asymmetric_fence.h"
#include "os/sync/futex.h"

namespace mobius::os {

namespace {

// Spins, then yields, then sleeps for moments, until the condition holds.
template <typename Condition>
void await(const Condition& is_so) {
  constexpr int kSpins = 100;
  constexpr int kYields = 20;
  constexpr timespec kMoment{0, 20'000};
  for (int looks = 0; !is_so(); ++looks) {
    if (looks < kSpins) {
      relax();
    } else if (looks < kSpins + kYields) {
      sched_yield();
    } else {
      nanosleep(&kMoment, nullptr);
    }
  }
}

}  // namespace

void BiasedLock::acquire() {
  // Acquire pairs with the release in unlock().
  if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]] {
    wait_until_free();
  }
  acquired();
}

void BiasedLock::wait_until_free() {
  await([this] {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  });
}

// Called with `held_` set. Excludes the thread with the bias, or gives the bias to this thread.
void BiasedLock::acquired() {
  if (biased().load(std::memory_order_relaxed) != nullptr) take_bias();
  const void* const me = mob_thread_();
  if (last_ != me) {
    last_ = me;
    streak_ = 0;
  }
  if (++streak_ < needed_ || !has_heavy_fences()) return;
  streak_ = 0;
  const void* const only = only_.load(std::memory_order_relaxed);
  if (only != nullptr && only != me) return;
  only_.store(me, std::memory_order_relaxed);
  bias_.uses = 0;
  biased().store(me, std::memory_order_relaxed);
}

void BiasedLock::take_bias() {
  biased().store(nullptr, std::memory_order_relaxed);
  heavy_fence();  // pairs with the compiler barrier in mob_bias_enter_()
  await([this] { return inside().load(std::memory_order_acquire) == 0; });
  needed_ =
      bias_.uses + bias_.further < kPays ? std::min(needed_ * 4, kLongestStreak) : kFirstStreak;
}

}  // namespace mobius::os
