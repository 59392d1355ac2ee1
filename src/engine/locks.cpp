// SPDX-License-Identifier: BSD-3-Clause
#include "engine/locks.h"

#include "base/status.h"

namespace mobius::engine {
namespace {

using base::fail;
using os::LockResult;

mob_status_t held_by_self(const char* call) {
  return fail(MOB_ERR_STATE,
              "%s: the calling thread holds it already, and would wait for itself for ever", call);
}

void say_recovered(LockResult result, int* recovered) {
  if (recovered != nullptr) *recovered = result == LockResult::kRecovered ? 1 : 0;
}

}  // namespace

mob_status_t acquire_lock(Engine& engine, const char* call, os::HybridLockWord& word,
                          int* recovered) {
  LivenessProbe probe(engine);
  const LockResult result = os::lock(word, engine.lock_id(), engine.host().policy(), &probe);
  if (result == LockResult::kHeldBySelf) return held_by_self(call);
  say_recovered(result, recovered);
  return MOB_OK;
}

mob_status_t try_acquire_lock(Engine& engine, const char* call, os::HybridLockWord& word,
                              int* acquired, int* recovered) {
  LivenessProbe probe(engine);
  const LockResult result = os::try_lock(word, engine.lock_id(), probe);
  if (result == LockResult::kHeldBySelf) return held_by_self(call);
  *acquired = result == LockResult::kGaveUp ? 0 : 1;
  say_recovered(result, recovered);
  return MOB_OK;
}

mob_status_t release_lock(Engine& engine, const char* call, os::HybridLockWord& word) {
  const uint32_t self = engine.lock_id();
  const uint32_t owner = os::lock_owner(word);
  if (owner == self) {
    const mob_status_t status = engine.complete_transfers(call);
    static_cast<void>(os::unlock(word, self));  // cannot fail: the owner calls
    return status;
  }
  if (owner == 0) return fail(MOB_ERR_STATE, "%s: nobody holds it; acquire it first", call);
  return fail(MOB_ERR_STATE, "%s: the calling thread does not hold it; a thread of rank %d does",
              call, Engine::lock_owner(owner));
}

bool is_held(Engine& engine, const os::HybridLockWord& word) {
  const uint32_t owner = os::lock_owner(word);
  return owner != 0 && !LivenessProbe(engine).is_dead(owner);
}

}  // namespace mobius::engine
