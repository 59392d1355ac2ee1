// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One lock that excludes threads of one process and processes of one host alike: spin with limited
// back-off, yield, then sleep in the kernel (Nieplocha, Ju and Straatsma, "A multiprotocol
// communication support for the global address space programming model on the IBM SP", section 2).
// It is recovered when its owner dies.

#include <mobius/status.h>

#include <atomic>
#include <cstdint>

#include "os/waiter.h"

namespace mobius::os {

// Lies in memory that all users share; valid, and free, as zeros. Everything is in one word, so
// that a process killed between any two instructions leaves the lock whole:
//   bits 0…30   the owner, 0 when free
//   bit  31     somebody may sleep on the lower half
//   bits 32…62  the heir: a waiter that was passed over for so long that it is handed the lock
// A free lock has neither sleeper bit nor heir.
struct HybridLockWord {
  std::atomic<uint64_t> state;
};
static_assert(sizeof(HybridLockWord) == 8);

// For locks whose neighbours in memory are busy as well.
struct alignas(64) PaddedHybridLockWord : HybridLockWord {};
static_assert(sizeof(PaddedHybridLockWord) == 64);

// Names of users: 1 … kMaxLockUser. No two threads may use a lock under one name at a time, and a
// name may be given away again only when its last user no longer holds or awaits a lock.
inline constexpr uint32_t kMaxLockUser = 0x7fff'ffff;

// Says who will never unlock. Called by waiting threads, about every 100 ms of a wait.
class OwnerProbe {
 public:
  virtual ~OwnerProbe() = default;
  virtual bool is_dead(uint32_t owner) = 0;
};

enum class LockResult {
  kAcquired,
  kRecovered,   // acquired from an owner that died: what the lock protects may be half changed
  kHeldBySelf,  // not acquired: `self` holds it already
  kGaveUp,      // not acquired: the watch ended the wait
};

namespace lock_detail {
LockResult lock_contended(HybridLockWord& lock, uint32_t self, const WaitPolicy& policy,
                          OwnerProbe* probe, Watch* watch);
LockResult recover(HybridLockWord& lock, uint32_t self, OwnerProbe& probe);
mob_status_t unlock_contended(HybridLockWord& lock, uint32_t self);
}  // namespace lock_detail

// Acquires the lock if it is free. Never blocks; does not recover.
inline bool try_lock(HybridLockWord& lock, uint32_t self) {
  uint64_t free = 0;
  // Acquire pairs with the release in unlock().
  return lock.state.compare_exchange_strong(free, self, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}

// Acquires the lock if it is free or its owner is dead. Never blocks; kGaveUp if it is held.
inline LockResult try_lock(HybridLockWord& lock, uint32_t self, OwnerProbe& probe) {
  return try_lock(lock, self) ? LockResult::kAcquired : lock_detail::recover(lock, self, probe);
}

// Acquires the lock, waiting for as long as it takes. Not reentrant. Throughput comes first: who
// comes along may pass sleepers, but who was passed over for some 10 ms is handed the lock next.
// Without a probe the lock stays held when a process dies that holds it or waits for it.
inline LockResult lock(HybridLockWord& lock, uint32_t self, const WaitPolicy& policy,
                       OwnerProbe* probe = nullptr, Watch* watch = nullptr) {
  if (try_lock(lock, self)) [[likely]] {
    return LockResult::kAcquired;
  }
  return lock_detail::lock_contended(lock, self, policy, probe, watch);
}

// For one who cannot sleep here: acquires the lock if it is free, or was handed over since the last
// call; otherwise sees to it that it is handed over when it is released, unless another waiter is
// to have it first. kGaveUp while it is held: to be called again after every unlock. Never blocks;
// does not recover.
LockResult inherit(HybridLockWord& lock, uint32_t self);

// Releases the lock if nobody sleeps until then or is to be handed it. False if not, or `self` does
// not hold it: nothing is changed then.
inline bool try_unlock(HybridLockWord& lock, uint32_t self) {
  uint64_t held = self;
  // Release pairs with the acquire of whoever gets the lock next. Sequentially consistent: also the
  // fence between what was changed under the lock and looks for sleepers.
  return lock.state.compare_exchange_strong(held, 0, std::memory_order_seq_cst,
                                            std::memory_order_relaxed);
}

// Releases the lock. MOB_ERR_STATE, with nothing changed, if `self` does not hold it.
inline mob_status_t unlock(HybridLockWord& lock, uint32_t self) {
  if (try_unlock(lock, self)) [[likely]] {
    return MOB_OK;
  }
  return lock_detail::unlock_contended(lock, self);
}

// Who holds the lock at this moment, 0 if nobody.
inline uint32_t lock_owner(const HybridLockWord& lock) {
  return static_cast<uint32_t>(lock.state.load(std::memory_order_relaxed)) & kMaxLockUser;
}

}  // namespace mobius::os
