// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/access.h"

#include <new>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/network/network.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "engine/remote/remote_objects.h"
#include "engine/rma/delegation.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/segment.h"
#include "engine/sync/lazy_lock.h"
#include "engine/sync/locks.h"
#include "engine/transfer/router.h"

namespace mobius::engine {
namespace {

using base::fail;

// Each reader's row starts on a cache line of its own.
size_t row_bytes(mob_rank_t targets) {
  return (static_cast<size_t>(targets) * sizeof(std::atomic<uint32_t>) + 63) / 64 * 64;
}

// Decrements the count; false if it is 0.
bool take_one(std::atomic<uint32_t>& count) {
  uint32_t seen = count.load(std::memory_order_relaxed);
  do {
    if (seen == 0) return false;
    // Sequentially consistent with the load of the gate in leave_shared(): either this thread sees
    // the waiter at the gate, or that waiter sees the new count. Release pairs with the acquire in
    // is_read().
  } while (!count.compare_exchange_weak(seen, seen - 1, std::memory_order_seq_cst,
                                        std::memory_order_relaxed));
  return true;
}

}  // namespace

// Takes back the shared access of dead processes while a thread waits for exclusive access.
class Access::ReadersWatch final : public os::Watch {
 public:
  ReadersWatch(Access& access, mob_rank_t target) : access_(access), target_(target) {}
  mob_status_t look() override {
    access_.forget_dead_readers(target_);
    return MOB_OK;
  }

 private:
  Access& access_;
  mob_rank_t target_;
};

mob_status_t Access::make(const SyncServices& services, Team& team, mob_status_t mine,
                          std::unique_ptr<Access>* access) {
  auto made = std::make_unique<Access>(services);
  const auto members = static_cast<size_t>(team.size());
  const mob_rank_t local_size = team.local_team().size();
  const size_t bytes = static_cast<size_t>(local_size) * sizeof(os::PaddedHybridLockWord) +
                       members * row_bytes(local_size);
  if (team.spans_hosts()) {
    made->shared_elsewhere_ = std::make_unique<std::atomic<uint32_t>[]>(members);
  }
  const mob_status_t status = made->area_.make(team, bytes, mine, "mob_access_create", *made);
  if (status == MOB_OK) *access = std::move(made);
  return status;
}

mob_status_t Access::release() {
  constexpr const char* kCall = "mob_access_free";
  // All members give back their access before any member checks.
  mob_status_t status = team().barrier();
  const mob_rank_t self = team().rank();
  const mob_rank_t own_rank = team().map().world_rank(self);
  if (status == MOB_OK && is_held(services_, gate(self))) {
    status = fail(MOB_ERR_STATE, "%s: a process has exclusive access to rank %d", kCall, own_rank);
  }
  if (status == MOB_OK && deferred_.load(std::memory_order_relaxed) != 0) {
    status =
        fail(MOB_ERR_STATE, "%s: rank %d has started access; unlock it first", kCall, own_rank);
  }
  for (mob_rank_t target = 0; target < team().size() && status == MOB_OK; ++target) {
    if (own_shared(target).load(std::memory_order_relaxed) == 0) continue;
    status = fail(MOB_ERR_STATE, "%s: rank %d has shared access to rank %d; unlock it first", kCall,
                  own_rank, team().map().world_rank(target));
  }
  if ((status = team().agree(status, kCall))) return status;
  return area_.release();
}

void Access::set_schedule(std::optional<schedule::Policy> hint) {
  hint_.store(hint ? static_cast<int>(*hint) : -1, std::memory_order_relaxed);
}

std::optional<schedule::Policy> Access::hint() const {
  const int hint = hint_.load(std::memory_order_relaxed);
  return hint < 0 ? std::nullopt : std::optional(static_cast<schedule::Policy>(hint));
}

void Access::open_epoch(mob_rank_t target, Scheduler::Epoch epoch) const {
  services_.scheduler.open_epoch(team().map().world_rank(target), hint(), epoch);
}

mob_status_t Access::start_lock(const char* call, mob_rank_t target, ClaimMode mode) {
  LazyLock& deferred = services_.lazy_lock;
  const bool is_exclusive = mode == ClaimMode::kExclusive;
  if (is_here(target) || !deferred.may_start(team().map().world_rank(target), hint())) {
    return is_exclusive ? lock_exclusive(call, target, nullptr)
                        : lock_shared(call, target, nullptr);
  }
  if (const mob_status_t status = deferred.gain(call)) return status;
  if (has_exclusive(target)) return held_already(call);
  return deferred.start(*this, target, remote(target), mode, hint());
}

void Access::gained(mob_rank_t target, ClaimMode mode, std::optional<schedule::Policy> hint) {
  const bool is_shared = mode == ClaimMode::kShared;
  if (is_shared) own_shared(target).fetch_add(1, std::memory_order_relaxed);
  services_.scheduler.open_epoch(team().map().world_rank(target), hint,
                                 is_shared ? Scheduler::Epoch::kSeen : Scheduler::Epoch::kWaits);
}

std::atomic<uint32_t>& Access::shared(mob_rank_t reader, mob_rank_t target) const {
  const mob_rank_t local_size = team().local_team().size();
  auto* gates = static_cast<os::PaddedHybridLockWord*>(area_.memory());
  auto* row = reinterpret_cast<unsigned char*>(gates + local_size) +
              static_cast<size_t>(reader) * row_bytes(local_size);
  return reinterpret_cast<std::atomic<uint32_t>*>(row)[team().place_here(target)];
}

bool Access::has_exclusive(mob_rank_t target) const {
  if (!is_here(target)) [[unlikely]] {
    return services_.remote_objects.locks().holds(remote(target));
  }
  return os::lock_owner(gate(target)) == services_.peers.lock_id();
}

// Whether any member has shared access to the target. Members before `*next` are known to have
// none.
bool Access::is_read(mob_rank_t target, mob_rank_t* next) const {
  for (; *next < team().size(); ++*next) {
    // Acquire pairs with the release in leave_shared(): the readers have finished reading.
    if (shared(*next, target).load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

void Access::forget_dead_readers(mob_rank_t target) {
  for (mob_rank_t reader = 0; reader < team().size(); ++reader) {
    std::atomic<uint32_t>& word = shared(reader, target);
    if (word.load(std::memory_order_relaxed) != 0 &&
        (services_.peers.is_lost(team().map().world_rank(reader)) ||
         (!services_.peers.is_here(team().map().world_rank(reader)) &&
          services_.peers.is_lost(team().map().world_rank(target))))) {
      word.store(0, std::memory_order_release);
    }
  }
}

// Counts a reader. Fails if a thread holds the gate.
bool Access::enter_shared(mob_rank_t reader, mob_rank_t target) {
  // Sequentially consistent: a reader counts itself before it loads the gate, and a writer locks
  // the gate before it loads the counts (the fence in lock_exclusive()). The load also acquires
  // what the last holder of exclusive access released with the gate.
  shared(reader, target).fetch_add(1, std::memory_order_seq_cst);
  if (gate(target).state.load(std::memory_order_seq_cst) == 0) return true;
  leave_shared(reader, target);
  return false;
}

// False if the reader has no shared access.
bool Access::leave_shared(mob_rank_t reader, mob_rank_t target) {
  if (!take_one(shared(reader, target))) return false;
  if (gate(target).state.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
    const uint32_t waiting = os::lock_owner(gate(target));
    if (waiting != 0) services_.waiter.ring(Peers::lock_owner(waiting));
    if (services_.network.is_open()) {
      RemoteLocks::released(services_.segment, team().map().world_rank(target));
    }
  }
  return true;
}

// Ends shared access of the calling process, to a target on any host.
mob_status_t Access::leave_own_shared(mob_rank_t target, bool* had) {
  if (is_here(target)) [[likely]] {
    *had = leave_shared(team().rank(), target);
    return MOB_OK;
  }
  *had = take_one(own_shared(target));
  if (!*had) return MOB_OK;
  services_.scheduler.close_epoch(team().map().world_rank(target), Scheduler::Epoch::kSeen);
  return services_.remote_objects.locks().give_back(remote(target), ClaimMode::kShared);
}

// Unlocks the gate for the calling thread. Does not complete transfers; unlock() does that.
void Access::leave_gate(mob_rank_t target) const {
  static_cast<void>(os::unlock(gate(target), services_.peers.lock_id()));
  if (services_.network.is_open()) {
    RemoteLocks::released(services_.segment, team().map().world_rank(target));
  }
}

mob_status_t Access::lock_exclusive(const char* call, mob_rank_t target, int* recovered) {
  const Delegation::Stay stay(services_.delegation);
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  if (!is_here(target)) [[unlikely]] {
    const mob_status_t status = services_.remote_objects.locks().acquire(
        call, remote(target), ClaimMode::kExclusive, recovered);
    if (status == MOB_OK) open_epoch(target, Scheduler::Epoch::kWaits);
    return status;
  }
  if (const mob_status_t status =
          acquire_lock(services_, call, gate(target), recovered, team().map().world_rank(target))) {
    return status;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter_shared()
  mob_rank_t next = 0;
  if (!is_read(target, &next)) return MOB_OK;
  ReadersWatch watch(*this, target);
  try {
    const mob_status_t status =
        services_.waiter.wait_until([&] { return !is_read(target, &next); }, &watch);
    if (status != MOB_OK) leave_gate(target);
    return status;
  } catch (const std::bad_alloc&) {
    leave_gate(target);
    throw;
  }
}

mob_status_t Access::lock_shared(const char* call, mob_rank_t target, int* recovered) {
  const Delegation::Stay stay(services_.delegation);
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  if (!is_here(target)) [[unlikely]] {
    const mob_status_t status = services_.remote_objects.locks().acquire(
        call, remote(target), ClaimMode::kShared, recovered);
    if (status == MOB_OK) {
      own_shared(target).fetch_add(1, std::memory_order_relaxed);
      open_epoch(target, Scheduler::Epoch::kSeen);
    }
    return status;
  }
  if (enter_shared(team().rank(), target)) [[likely]] {
    if (recovered != nullptr) *recovered = 0;
    return MOB_OK;
  }
  if (const mob_status_t status =
          acquire_lock(services_, call, gate(target), recovered, team().map().world_rank(target))) {
    return status;
  }
  shared(team().rank(), target).fetch_add(1, std::memory_order_relaxed);
  leave_gate(target);
  return MOB_OK;
}

mob_status_t Access::try_exclusive(const char* call, mob_rank_t target, int* acquired,
                                   int* recovered) {
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  if (!is_here(target)) [[unlikely]] {
    const mob_status_t status = services_.remote_objects.locks().try_acquire(
        call, remote(target), ClaimMode::kExclusive, acquired, recovered);
    if (status == MOB_OK && *acquired != 0) open_epoch(target, Scheduler::Epoch::kWaits);
    return status;
  }
  int at_gate = 0;
  if (const mob_status_t status = try_acquire_lock(services_, call, gate(target), &at_gate,
                                                   recovered, team().map().world_rank(target))) {
    return status;
  }
  *acquired = 0;
  if (at_gate == 0) return MOB_OK;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter_shared()
  mob_rank_t next = 0;
  if (is_read(target, &next)) forget_dead_readers(target);
  if (is_read(target, &next)) {
    leave_gate(target);
  } else {
    *acquired = 1;
  }
  return MOB_OK;
}

mob_status_t Access::try_shared(const char* call, mob_rank_t target, int* acquired,
                                int* recovered) {
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  if (!is_here(target)) [[unlikely]] {
    const mob_status_t status = services_.remote_objects.locks().try_acquire(
        call, remote(target), ClaimMode::kShared, acquired, recovered);
    if (status == MOB_OK && *acquired != 0) {
      own_shared(target).fetch_add(1, std::memory_order_relaxed);
      open_epoch(target, Scheduler::Epoch::kSeen);
    }
    return status;
  }
  if (enter_shared(team().rank(), target)) {
    *acquired = 1;
    if (recovered != nullptr) *recovered = 0;
    return MOB_OK;
  }
  // A dead process may hold the gate, or another reader may be passing it.
  int at_gate = 0;
  if (const mob_status_t status = try_acquire_lock(services_, call, gate(target), &at_gate,
                                                   recovered, team().map().world_rank(target))) {
    return status;
  }
  *acquired = at_gate;
  if (at_gate == 0) return MOB_OK;
  shared(team().rank(), target).fetch_add(1, std::memory_order_relaxed);
  leave_gate(target);
  return MOB_OK;
}

mob_status_t Access::unlock(const char* call, mob_rank_t target) {
  const Delegation::Stay stay(services_.delegation);
  const mob_rank_t rank = team().map().world_rank(target);
  if (!is_here(target) && services_.lazy_lock.is_used()) [[unlikely]] {
    // The thread's puts travel in the same stream, before the unlock. Transfers on other paths must
    // be complete first.
    services_.scheduler.fence();
    const mob_status_t ordered = services_.completion.order(call);
    mob_status_t ended = MOB_OK;
    if (services_.lazy_lock.end(call, *this, target, &ended)) {
      const mob_status_t completed = services_.completion.complete_all(call);
      if (ended != MOB_OK) return ended;
      return completed != MOB_OK ? completed : ordered;
    }
  }
  if (has_exclusive(target)) {
    if (is_here(target)) [[likely]] {
      return release_lock(services_, call, gate(target), rank);
    }
    // The request follows the transfers in one message, so the target does not wait for their
    // answer.
    mob_status_t status = services_.router.order_transfers();
    services_.scheduler.close_epoch(rank);
    const mob_status_t asked =
        services_.remote_objects.locks().give_back(remote(target), ClaimMode::kExclusive);
    if (status == MOB_OK) status = asked;
    const mob_status_t completed = services_.completion.complete_all(call);
    return completed != MOB_OK ? completed : status;
  }
  if (own_shared(target).load(std::memory_order_relaxed) != 0) {
    const mob_status_t status = services_.completion.complete_all(call);
    bool had = false;
    const mob_status_t left = leave_own_shared(target, &had);
    if (had) return status != MOB_OK ? status : left;
  }
  return fail(MOB_ERR_STATE, "%s: no access to rank %d to give back; mob_access_lock() gains it",
              call, rank);
}

mob_status_t Access::lock_all(const char* call, int* recovered) {
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    if (!has_exclusive(target)) continue;
    return fail(MOB_ERR_STATE, "%s: the calling thread has exclusive access to rank %d", call,
                team().map().world_rank(target));
  }
  int any = 0;
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    int one = 0;
    if (const mob_status_t status = lock_shared(call, target, &one)) {
      while (target-- > 0) {
        bool had = false;
        static_cast<void>(leave_own_shared(target, &had));
      }
      return status;
    }
    any |= one;
  }
  if (recovered != nullptr) *recovered = any;
  return MOB_OK;
}

mob_status_t Access::unlock_all(const char* call) {
  const Delegation::Stay stay(services_.delegation);
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    if (own_shared(target).load(std::memory_order_relaxed) != 0) continue;
    return fail(MOB_ERR_STATE, "%s: no shared access to rank %d to give back", call,
                team().map().world_rank(target));
  }
  mob_status_t status = services_.completion.complete_all(call);
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    bool had = false;
    const mob_status_t left = leave_own_shared(target, &had);
    if (status == MOB_OK) status = left;
  }
  return status;
}

// The member that claims access to the caller; -1 if the claim is not valid.
mob_rank_t Access::claiming_member(const Claim& claim) const {
  const bool sound = claim.index == static_cast<uint64_t>(team().rank());
  return sound ? team().map().rank_of(claim.rank) : -1;
}

bool Access::attempt(Claim& claim, os::OwnerProbe* probe) {
  const mob_rank_t target = team().rank();
  const mob_rank_t claimant = claiming_member(claim);
  if (claimant < 0) return false;
  if (claim.mode == ClaimMode::kShared) {
    // A claim that is queued at the gate enters through the gate.
    if (!claim.queued && enter_shared(claimant, target)) return true;
    if (!attempt_lock(gate(target), claim, probe)) return false;
    shared(claimant, target).fetch_add(1, std::memory_order_relaxed);
    static_cast<void>(os::unlock(gate(target), claim.id));
    return true;
  }
  if (!claim.at_gate) {
    if (!attempt_lock(gate(target), claim, probe)) return false;
    claim.at_gate = true;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter_shared()
  }
  if (probe != nullptr) forget_dead_readers(target);
  return !is_read(target, &claim.next);
}

void Access::abandon(Claim& claim) {
  if (claim.at_gate) static_cast<void>(os::unlock(gate(team().rank()), claim.id));
}

void Access::give_back(const Claim& claim) {
  const mob_rank_t claimant = claiming_member(claim);
  if (claimant < 0) return;
  if (claim.mode == ClaimMode::kShared) {
    leave_shared(claimant, team().rank());
  } else {
    static_cast<void>(os::unlock(gate(team().rank()), claim.id));
  }
}

}  // namespace mobius::engine
