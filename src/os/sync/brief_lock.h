// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A lock between all threads of all processes of a host for work of nanoseconds to microseconds,
// after which the owner waits for nothing. A plain store releases it, so an uncontended pair of
// calls costs one atomic instruction. In return, waiters get no wake-up: they spin, yield, then
// sleep for moments. It is recovered when its owner dies. hybrid_lock.h has the lock for longer
// work.

#include <atomic>
#include <cstdint>

#include "os/sync/hybrid_lock.h"

namespace mobius::os {

// Lies in memory that all users share; valid, and free, as zeros. Users are named as those of a
// HybridLockWord.
struct BriefLockWord {
  std::atomic<uint32_t> owner;
};

inline bool try_lock(BriefLockWord& lock, uint32_t self) {
  uint32_t free = 0;
  // Acquire pairs with the release in unlock().
  return lock.owner.compare_exchange_strong(free, self, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}

// Waits for the lock after try_lock() has failed, and takes it from an owner that died, or that had
// this thread's name before it.
void lock_contended(BriefLockWord& lock, uint32_t self, const WaitPolicy& policy,
                    OwnerProbe& probe);

// Requires that the caller holds it. No fence: its later loads may precede the release.
inline void unlock(BriefLockWord& lock) { lock.owner.store(0, std::memory_order_release); }

}  // namespace mobius::os
