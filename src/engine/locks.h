// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Short exclusion between all threads of all processes of a host, by a lock in shared memory.

#include "engine/engine.h"
#include "os/hybrid_lock.h"

namespace mobius::engine {

// Tells a waiter whether the owner of a lock is gone for good.
class LivenessProbe final : public os::OwnerProbe {
 public:
  explicit LivenessProbe(Engine& engine) : engine_(engine) {}
  bool is_dead(uint32_t owner) override {
    return engine_.liveness().is_dead(Engine::lock_owner(owner));
  }

 private:
  Engine& engine_;
};

// Holds a lock whose owner cannot die halfway through a change that matters: one that a dead owner
// left is taken over as it is.
class LockGuard {
 public:
  LockGuard(Engine& engine, os::HybridLockWord& word) : word_(word), id_(engine.lock_id()) {
    LivenessProbe probe(engine);
    os::lock(word_, id_, engine.host().policy(), &probe);
  }
  ~LockGuard() { os::unlock(word_, id_); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  os::HybridLockWord& word_;
  const uint32_t id_;
};

}  // namespace mobius::engine
