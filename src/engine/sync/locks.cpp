// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/locks.h"

#include <utility>

#include "base/settings.h"
#include "base/status.h"
#include "engine/network/network.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "engine/scheduler/scheduler.h"
#include "engine/transfer/router.h"

namespace mobius::engine {
namespace {

using base::fail;
using os::LockResult;

void say_recovered(LockResult result, int* recovered) {
  if (recovered != nullptr) *recovered = result == LockResult::kRecovered ? 1 : 0;
}

// Asks for a check of the owner's liveness during a wait for a lock.
class RecoveryWatch final : public os::Watch {
 public:
  explicit RecoveryWatch(bool* probing) : probing_(probing) {}
  mob_status_t look() override {
    *probing_ = true;
    return MOB_OK;
  }

 private:
  bool* probing_;
};

// Whether only threads that wait or poll serve requests of other hosts.
bool must_poll_for_others(const SyncServices& services) {
  return services.network.is_open() &&
         services.settings.progress_mode() == base::ProgressMode::kPoll;
}

// Polls while it waits. Without a progress thread the waiter itself must receive the message of
// another host that releases the lock.
LockResult lock_polling(const SyncServices& services, os::HybridLockWord& word, mob_rank_t host) {
  LivenessProbe probe(services.peers, host);
  const uint32_t self = services.peers.lock_id();
  if (os::lock_owner(word) == self) return LockResult::kHeldBySelf;
  bool probing = false;
  LockResult result = LockResult::kGaveUp;
  RecoveryWatch watch(&probing);
  static_cast<void>(services.waiter.wait_until(
      [&] {
        if (os::try_lock(word, self)) {
          result = LockResult::kAcquired;
        } else if (std::exchange(probing, false)) {
          result = os::try_lock(word, self, probe);
        }
        return result != LockResult::kGaveUp;
      },
      &watch, os::Wakeup::kMaybe));
  return result;
}

}  // namespace

mob_status_t acquire_lock(const SyncServices& services, const char* call, os::HybridLockWord& word,
                          int* recovered, mob_rank_t host) {
  LivenessProbe probe(services.peers, host);
  LockResult result{};
  // The holder of the lock may be waiting for these operations in a flush. Calls the components
  // directly, because the call of Waiter could not be inlined.
  services.scheduler.issue_all();
  services.router.issue_exposed();
  if (must_poll_for_others(services) && !in_handler) [[unlikely]] {
    result = lock_polling(services, word, host);
  } else {
    result = os::lock(word, services.peers.lock_id(), services.peers.host().policy(), &probe);
  }
  if (result == LockResult::kHeldBySelf) return held_already(call);
  say_recovered(result, recovered);
  return MOB_OK;
}

mob_status_t try_acquire_lock(const SyncServices& services, const char* call,
                              os::HybridLockWord& word, int* acquired, int* recovered,
                              mob_rank_t host) {
  LivenessProbe probe(services.peers, host);
  const LockResult result = os::try_lock(word, services.peers.lock_id(), probe);
  if (result == LockResult::kHeldBySelf) return held_already(call);
  *acquired = result == LockResult::kGaveUp ? 0 : 1;
  say_recovered(result, recovered);
  return MOB_OK;
}

mob_status_t release_lock(const SyncServices& services, const char* call, os::HybridLockWord& word,
                          mob_rank_t host) {
  const uint32_t self = services.peers.lock_id();
  const uint32_t owner = os::lock_owner(word);
  if (owner == self) {
    const mob_status_t status = services.completion.complete_all(call);
    static_cast<void>(os::unlock(word, self));  // cannot fail: the owner calls
    if (host >= 0 && services.network.is_open()) [[unlikely]] {
      RemoteLocks::released(services.segment, host);
    }
    return status;
  }
  if (owner == 0) return fail(MOB_ERR_STATE, "%s: nobody holds it; acquire it first", call);
  return fail(MOB_ERR_STATE, "%s: the calling thread does not hold it; a thread of rank %d does",
              call, Peers::lock_owner(owner));
}

bool attempt_lock(os::HybridLockWord& word, Claim& claim, os::OwnerProbe* probe) {
  LockResult result = LockResult::kGaveUp;
  if (claim.waits) {
    result = os::inherit(word, claim.id);
  } else if (os::try_lock(word, claim.id)) {
    result = LockResult::kAcquired;
  }
  if (result == LockResult::kGaveUp && probe != nullptr) {
    result = os::try_lock(word, claim.id, *probe);
  }
  claim.recovered |= result == LockResult::kRecovered;
  return result == LockResult::kAcquired || result == LockResult::kRecovered;
}

bool is_held(const SyncServices& services, const os::HybridLockWord& word) {
  const uint32_t owner = os::lock_owner(word);
  return owner != 0 && !LivenessProbe(services.peers).is_dead(owner);
}

}  // namespace mobius::engine
