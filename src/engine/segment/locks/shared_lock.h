// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Short exclusion between all threads of all processes of a host, by a lock in shared memory.

#include "engine/common/peers.h"
#include "os/sync/brief_lock.h"
#include "os/sync/hybrid_lock.h"

namespace mobius::engine {

// Tells a waiter whether the owner of a lock is gone for good.
class LivenessProbe final : public os::OwnerProbe {
 public:
  // `host` is the rank, on this host, that hosts a lock which processes of other hosts may hold;
  // -1 for every other lock.
  explicit LivenessProbe(Peers& peers, mob_rank_t host = -1) : peers_(peers), host_(host) {}
  bool is_dead(uint32_t owner) override;

 private:
  Peers& peers_;
  const mob_rank_t host_;
};

// Holds a lock whose owner cannot die halfway through a change that matters: a lock that a dead
// owner left is taken over as it is.
class LockGuard {
 public:
  LockGuard(Peers& peers, os::HybridLockWord& word) : word_(word), id_(peers.lock_id()) {
    LivenessProbe probe(peers);
    os::lock(word_, id_, peers.host().policy(), &probe);
  }
  ~LockGuard() { os::unlock(word_, id_); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  os::HybridLockWord& word_;
  const uint32_t id_;
};

// The same for a BriefLockWord.
class BriefLockGuard {
 public:
  BriefLockGuard(Peers& peers, os::BriefLockWord& word) : word_(word) { lock(peers, word); }
  ~BriefLockGuard() { os::unlock(word_); }
  BriefLockGuard(const BriefLockGuard&) = delete;
  BriefLockGuard& operator=(const BriefLockGuard&) = delete;

  static void lock(Peers& peers, os::BriefLockWord& word) {
    const uint32_t self = peers.lock_id();
    if (!os::try_lock(word, self)) [[unlikely]] {
      lock_contended(peers, word, self);
    }
  }

 private:
  [[gnu::cold]] static void lock_contended(Peers& peers, os::BriefLockWord& word, uint32_t self);

  os::BriefLockWord& word_;
};

}  // namespace mobius::engine
