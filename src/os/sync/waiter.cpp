// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/waiter.h"

#include <sched.h>

#include <algorithm>
#include <climits>

#include "os/sync/crowding.h"
#include "os/sync/futex.h"

namespace mobius::os {
namespace {

constexpr uint64_t kLookIntervalNs = 100'000'000;
constexpr uint32_t kPollsPerClock = 32;

}  // namespace

void WaitPolicy::yield() const {
  if (crowding != nullptr) {
    crowding->yield();
  } else {
    sched_yield();
  }
}

Patience::Step Patience::next_patient(Work work) {
  if (work == Work::kSome) {
    polls_ = 0;
    yields_ = 0;
    spin_end_ = 0;
    yield_end_ = 0;
    spun_ = false;
    // A waiter that always finds work must also notice that its condition cannot come to hold.
    // Its hook runs, too: whoever makes the work may wait for what the hook does.
    if (++busy_ % kPollsPerClock == 0) {
      if (idle_hook.call != nullptr) idle_hook.call(idle_hook.argument);
      if (watch_ends()) return Step::kGiveUp;
    }
    return Step::kAgain;
  }
  if (work == Work::kForNear) {
    polls_ = kEagerPolls;
    yields_ = 0;
    spun_ = true;
  }
  if (policy_.spin_ns != 0 && !spun_) {
    if (++polls_ % kPollsPerClock != 0) {
      relax();
      return Step::kAgain;
    }
    const uint64_t now = now_ns();
    if (spin_end_ == 0) spin_end_ = now + policy_.spin_ns;
    spun_ = now >= spin_end_;
  }
  if (watch_ends()) return Step::kGiveUp;
  if (policy_.spin_ns != 0 && !spun_) return Step::kAgain;
  if (idle_hook.call != nullptr) idle_hook.call(idle_hook.argument);
  if (yields_ < policy_.yields || yields_on()) {
    ++yields_;
    policy_.yield();
    return Step::kAgain;
  }
  return Step::kSleep;
}

// A waiter that slept for less than a wake-up takes delayed the other side, which then sleeps too,
// and so on. Yielding wastes no processor: another thread that wants it gets it. If both share a
// processor while another is idle, the kernel notices within tens of milliseconds; between sleepers
// it never does.
bool Patience::yields_on() {
  if (policy_.yield_ns == 0) return false;
  const uint64_t now = now_ns();
  if (yield_end_ == 0) yield_end_ = now + policy_.yield_ns;
  return now < yield_end_;
}

bool Patience::watch_ends() {
  if (watch_ == nullptr) return false;
  const uint64_t now = now_ns();
  if (next_look_ == 0) {
    next_look_ = now + kLookIntervalNs;
  } else if (now >= next_look_) {
    status_ = watch_->look();
    next_look_ = now_ns() + kLookIntervalNs;
  }
  return status_ != MOB_OK;
}

void Patience::sleep(const std::atomic<uint32_t>& word, uint32_t value) {
  uint64_t timeout = kNoTimeout;
  if (watch_ != nullptr) {
    const uint64_t now = now_ns();
    timeout = next_look_ > now ? next_look_ - now : 0;
  }
  // No bell rings for the events that the hook polls for.
  if (wakeup_ == Wakeup::kMaybe || idle_hook.call != nullptr) {
    timeout = std::min(timeout, nap_ns_);
    nap_ns_ = std::min(nap_ns_ + nap_ns_ / 8, kLongestNapNs);
  }
  futex_wait(&word, value, timeout);
}

void Patience::nap(const std::atomic<uint32_t>& word, uint32_t value) {
  futex_wait(&word, value, kShortestNapNs);
}

mob_status_t wait_while_equal(const std::atomic<uint32_t>& word, uint32_t value,
                              std::atomic<uint32_t>& sleepers, const WaitPolicy& policy,
                              Watch* watch) {
  if (word.load(std::memory_order_acquire) != value) return MOB_OK;
  Patience patience(policy, watch);
  do {
    const Patience::Step step = patience.next();
    // The watch may have ended the wait after the condition had come to hold.
    if (step == Patience::Step::kGiveUp) {
      return word.load(std::memory_order_acquire) != value ? MOB_OK : patience.status();
    }
    if (step == Patience::Step::kSleep) {
      const SleeperScope scope(sleepers);
      if (word.load(std::memory_order_acquire) != value) return MOB_OK;
      patience.sleep(word, value);
    }
  } while (word.load(std::memory_order_acquire) == value);
  return MOB_OK;
}

void wake_all(const std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with SleeperScope
  if (sleepers.load(std::memory_order_relaxed) != 0) futex_wake(&word, INT_MAX);
}

void ring_sleepers(std::atomic<uint32_t>& bell) {
  bell.fetch_add(1, std::memory_order_release);  // pairs with the load in wait_until()
  futex_wake(&bell, INT_MAX);
}

}  // namespace mobius::os
