// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/brief_lock.h"

#include <time.h>

#include <algorithm>

#include "os/sync/futex.h"

namespace mobius::os {
namespace {

constexpr uint32_t kMostPauses = 32;  // most pauses between two reads of a held lock
constexpr uint64_t kProbeIntervalNs = 100'000'000;
constexpr long kShortestSleepNs = 20'000;
constexpr long kLongestSleepNs = 1'000'000;

bool acquire(BriefLockWord& lock, uint32_t self) {
  return lock.owner.load(std::memory_order_relaxed) == 0 && try_lock(lock, self);
}

// Each read takes the lock's line away from its owner, so the intervals grow.
bool spin(BriefLockWord& lock, uint32_t self, uint64_t for_ns) {
  const uint64_t end = now_ns() + for_ns;
  uint32_t back_off = 1;
  do {
    for (uint32_t i = 0; i < back_off; ++i) relax();
    back_off = std::min(2 * back_off, kMostPauses);
    if (acquire(lock, self)) return true;
  } while (now_ns() < end);
  return false;
}

bool yield(BriefLockWord& lock, uint32_t self, const WaitPolicy& policy) {
  const uint64_t end = policy.yield_ns != 0 ? now_ns() + policy.yield_ns : 0;
  for (uint64_t i = 0; i < policy.yields || (end != 0 && now_ns() < end); ++i) {
    policy.yield();
    if (acquire(lock, self)) return true;
  }
  return false;
}

}  // namespace

void lock_contended(BriefLockWord& lock, uint32_t self, const WaitPolicy& policy,
                    OwnerProbe& probe) {
  uint64_t next_look = now_ns() + kProbeIntervalNs;
  long sleep_ns = kShortestSleepNs;
  while (true) {
    if (policy.spin_ns != 0 && spin(lock, self, policy.spin_ns)) return;
    if (yield(lock, self, policy)) return;
    uint32_t owner = lock.owner.load(std::memory_order_relaxed);
    if (owner == self) return;
    if (owner != 0 && now_ns() >= next_look) {
      // Acquire pairs with the last release of the dead owner. One waiter succeeds.
      if (probe.is_dead(owner) &&
          lock.owner.compare_exchange_strong(owner, self, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
        return;
      }
      next_look = now_ns() + kProbeIntervalNs;
    }
    if (acquire(lock, self)) return;
    const timespec moment{0, sleep_ns};
    nanosleep(&moment, nullptr);
    sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs);
  }
}

}  // namespace mobius::os
