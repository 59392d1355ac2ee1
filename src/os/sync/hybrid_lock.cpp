// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/hybrid_lock.h"

#include <algorithm>
#include <bit>

#include "base/status.h"
#include "os/sync/futex.h"

namespace mobius::os {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the futex is the first half of the word");

constexpr uint64_t kSleepersBit = uint64_t{1} << 31;
constexpr uint64_t kLowerHalf = UINT32_MAX;
constexpr uint64_t kUpperHalf = ~kLowerHalf;

constexpr uint64_t kLookIntervalNs = 100'000'000;
constexpr uint64_t kImpatienceNs = 10'000'000;
constexpr uint32_t kMaxBackOff = 32;  // most pauses between two reads of a held lock

// Sleepers have different wake-up bits, because a lock that is handed over must wake the heir only.
constexpr uint32_t kWaiterBits = 1;
constexpr uint32_t kHeirBits = 2;

uint32_t owner_of(uint64_t state) { return static_cast<uint32_t>(state) & kMaxLockUser; }
uint32_t heir_of(uint64_t state) { return static_cast<uint32_t>(state >> 32); }

constexpr WaitPolicy kNoWait;

// One thread's wait for a lock.
class Contender {
 public:
  Contender(HybridLockWord& lock, uint32_t self, const WaitPolicy& policy)
      : state_(lock.state), self_(self), policy_(policy), start_(now_ns()) {}

  LockResult run(OwnerProbe* probe, Watch* watch);
  bool recover(OwnerProbe& probe);

 private:
  bool acquire();
  bool poll();
  bool prepare_to_sleep(uint64_t now, uint64_t* state);
  bool withdraw();

  std::atomic<uint64_t>& state_;
  const uint32_t self_;
  const WaitPolicy& policy_;
  const uint64_t start_;
  // kSleepersBit once other threads may sleep behind the wake-up that this thread got.
  uint64_t wanted_bit_ = 0;
};

// True if this thread has the lock: it was free, or was handed over.
bool Contender::acquire() {
  uint64_t state = state_.load(std::memory_order_relaxed);
  if (owner_of(state) == self_) {
    // Handed over. Acquire pairs with the release in unlock_contended().
    state_.load(std::memory_order_acquire);
    return true;
  }
  return state == 0 &&
         state_.compare_exchange_strong(state, self_ | wanted_bit_, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

// Spins, then yields. Each read takes the lock's line away from its owner, so the intervals grow.
bool Contender::poll() {
  if (acquire()) return true;
  if (policy_.spin_ns != 0) {
    const uint64_t end = now_ns() + policy_.spin_ns;
    uint32_t back_off = 1;
    do {
      for (uint32_t i = 0; i < back_off; ++i) relax();
      back_off = std::min(2 * back_off, kMaxBackOff);
      if (acquire()) return true;
    } while (now_ns() < end);
  }
  const uint64_t end = policy_.yield_ns != 0 ? now_ns() + policy_.yield_ns : 0;
  for (uint64_t i = 0; i < policy_.yields || (end != 0 && now_ns() < end); ++i) {
    policy_.yield();
    if (acquire()) return true;
  }
  return false;
}

// Marks the lock so that its owner will wake this thread. False if that is no longer needed.
// `*state` becomes the contents of the lock during the sleep.
bool Contender::prepare_to_sleep(uint64_t now, uint64_t* state) {
  uint64_t seen = state_.load(std::memory_order_relaxed);
  while (true) {
    if (seen == 0 || owner_of(seen) == self_) return false;
    uint64_t marked = seen | kSleepersBit;
    if (heir_of(seen) == 0 && now - start_ >= kImpatienceNs) marked |= uint64_t{self_} << 32;
    if (marked == seen || state_.compare_exchange_weak(seen, marked, std::memory_order_relaxed)) {
      *state = marked;
      return true;
    }
  }
}

// Takes the lock from a dead owner. Only one waiter succeeds, because the compared value contains
// the owner.
bool Contender::recover(OwnerProbe& probe) {
  uint64_t seen = state_.load(std::memory_order_relaxed);
  const uint32_t owner = owner_of(seen);
  if (owner == 0 || owner == self_ || !probe.is_dead(owner)) return false;
  while (owner_of(seen) == owner) {
    const uint64_t heir = heir_of(seen) == self_ ? 0 : seen & kUpperHalf;
    // Other threads may sleep. Acquire pairs with the dead owner's last release.
    if (state_.compare_exchange_weak(seen, heir | kSleepersBit | self_, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// Gives up the wait. False if the lock was handed over already.
bool Contender::withdraw() {
  uint64_t seen = state_.load(std::memory_order_acquire);
  while (heir_of(seen) == self_) {
    if (state_.compare_exchange_weak(seen, seen & kLowerHalf, std::memory_order_acquire))
      return true;
  }
  // This thread may be the one that was woken to take the lock, so wake another.
  if (seen == 0) futex_wake(&state_, 1, kWaiterBits);
  return owner_of(seen) != self_;
}

LockResult Contender::run(OwnerProbe* probe, Watch* watch) {
  if (owner_of(state_.load(std::memory_order_relaxed)) == self_) return LockResult::kHeldBySelf;
  uint64_t next_look = start_ + kLookIntervalNs;
  while (true) {
    if (poll()) return LockResult::kAcquired;
    uint64_t now = now_ns();
    uint64_t state = 0;
    if (prepare_to_sleep(now, &state)) {
      const uint32_t bits = heir_of(state) == self_ ? kHeirBits | kWaiterBits : kWaiterBits;
      futex_wait(&state_, static_cast<uint32_t>(state), next_look > now ? next_look - now : 0,
                 bits);
      wanted_bit_ = kSleepersBit;
      now = now_ns();
    }
    if (now < next_look) continue;
    if (probe != nullptr && recover(*probe)) return LockResult::kRecovered;
    if (watch != nullptr && watch->look() != MOB_OK) {
      return withdraw() ? LockResult::kGaveUp : LockResult::kAcquired;
    }
    next_look = now_ns() + kLookIntervalNs;
  }
}

}  // namespace

LockResult inherit(HybridLockWord& lock, uint32_t self) {
  // Acquire, everywhere: pairs with the release of the former owner.
  uint64_t seen = lock.state.load(std::memory_order_acquire);
  while (true) {
    if (owner_of(seen) == self) return LockResult::kAcquired;
    if (heir_of(seen) != 0) return LockResult::kGaveUp;
    const uint64_t next = seen == 0 ? self : seen | uint64_t{self} << 32;
    if (lock.state.compare_exchange_weak(seen, next, std::memory_order_acquire)) {
      return seen == 0 ? LockResult::kAcquired : LockResult::kGaveUp;
    }
  }
}

namespace lock_detail {

LockResult lock_contended(HybridLockWord& lock, uint32_t self, const WaitPolicy& policy,
                          OwnerProbe* probe, Watch* watch) {
  return Contender(lock, self, policy).run(probe, watch);
}

LockResult recover(HybridLockWord& lock, uint32_t self, OwnerProbe& probe) {
  if (lock_owner(lock) == self) return LockResult::kHeldBySelf;
  return Contender(lock, self, kNoWait).recover(probe) ? LockResult::kRecovered
                                                       : LockResult::kGaveUp;
}

mob_status_t unlock_contended(HybridLockWord& lock, uint32_t self) {
  uint64_t seen = lock.state.load(std::memory_order_relaxed);
  while (true) {
    if (owner_of(seen) != self) {
      return owner_of(seen) == 0
                 ? base::fail(MOB_ERR_STATE, "unlock of a lock that nobody holds")
                 : base::fail(MOB_ERR_STATE,
                              "unlock of a lock that another thread or process holds");
    }
    const uint32_t heir = heir_of(seen);
    const uint64_t next = heir == 0 ? 0 : heir | kSleepersBit;
    // As in unlock().
    if (lock.state.compare_exchange_weak(seen, next, std::memory_order_seq_cst,
                                         std::memory_order_relaxed)) {
      // If the sleeper that is woken here dies first, the others find out by themselves after 100
      // ms.
      if ((seen & kSleepersBit) != 0)
        futex_wake(&lock.state, 1, heir == 0 ? kWaiterBits : kHeirBits);
      return MOB_OK;
    }
  }
}

}  // namespace lock_detail
}  // namespace mobius::os
