// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One lock that excludes threads of one process and processes of one host alike: spin with limited
// back-off, yield, then sleep in the kernel (Nieplocha, Ju and Straatsma, "A multiprotocol
// communication support for the global address space programming model on the IBM SP", section 2).
// It is recovered when its owner dies.

#include <mobius/status.h>

#include <atomic>
#include <cstdint>

#include "os/sync/waiter.h"

namespace mobius::os {

// Lies in memory that all users share; valid, and free, as zeros. All state is in one word, so that
// a process killed between any two instructions leaves a consistent lock:
//   bits 0…30   the owner, 0 when free
//   bit  31     a thread may sleep on the lower half
//   bits 32…62  the heir: a waiter that was passed over for so long that it gets the lock next
// A free lock has neither sleeper bit nor heir.
struct HybridLockWord {
  std::atomic<uint64_t> state;
};
static_assert(sizeof(HybridLockWord) == 8);

// For locks whose neighbours in memory are busy too.
struct alignas(64) PaddedHybridLockWord : HybridLockWord {};
static_assert(sizeof(PaddedHybridLockWord) == 64);

// Names of users: 1 … kMaxLockUser. Two threads must not use a lock under one name at the same
// time. A name may be reused only when its last user neither holds nor awaits a lock.
inline constexpr uint32_t kMaxLockUser = 0x7fff'ffff;

// Tells which owners will never unlock. Waiting threads call it about every 100 ms of a wait.
class OwnerProbe {
 public:
  virtual ~OwnerProbe() = default;
  virtual bool is_dead(uint32_t owner) = 0;
};

enum class LockResult {
  kAcquired,
  kRecovered,   // acquired from an owner that died: the protected data may be half changed
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

// Acquires the lock, and waits for as long as that takes. Not reentrant. Throughput comes first: a
// newcomer may pass sleepers, but a waiter that was passed over for some 10 ms gets the lock next.
// Without a probe the lock stays held if a process dies that holds it or waits for it.
inline LockResult lock(HybridLockWord& lock, uint32_t self, const WaitPolicy& policy,
                       OwnerProbe* probe = nullptr, Watch* watch = nullptr) {
  if (try_lock(lock, self)) [[likely]] {
    return LockResult::kAcquired;
  }
  return lock_detail::lock_contended(lock, self, policy, probe, watch);
}

// For a caller that cannot sleep here. Acquires the lock if it is free, or was handed over since
// the last call; otherwise asks for it to be handed over at its release, unless another waiter has
// asked first. kGaveUp while the lock is held: call again after every unlock. Never blocks; does
// not recover.
LockResult inherit(HybridLockWord& lock, uint32_t self);

// Releases the lock if until then no thread sleeps and there is no heir. False, with nothing
// changed, if not, or if `self` does not hold it.
inline bool try_unlock(HybridLockWord& lock, uint32_t self) {
  uint64_t held = self;
  // Release pairs with the acquire of the next owner. Sequentially consistent, because it is also
  // the fence between changes under the lock and the caller's later reads of sleepers.
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

// The owner of the lock at this moment; 0 if it is free.
inline uint32_t lock_owner(const HybridLockWord& lock) {
  return static_cast<uint32_t>(lock.state.load(std::memory_order_relaxed)) & kMaxLockUser;
}

}  // namespace mobius::os
