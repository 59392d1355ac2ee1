// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared and exclusive access to the members of a team.
//
// Each member has a gate: a lock that a thread holds as long as it has exclusive access. Each
// process counts its shared accesses to each member in words of its own. To gain shared access
// while the gate is free, a reader counts itself and then loads the gate. A writer locks the gate
// and then loads all counts. So at least one of the two sees the other, and the reader steps back.
// Readers that find the gate locked queue for it too, which keeps the order fair.
//
// Every word names its owner, so that a dead process' lock can be taken back.
//
// For a member of another host that member's process does all this (remote/remote_locks.h). The
// words then name the claiming thread and process.

#include <atomic>
#include <memory>
#include <optional>

#include "engine/remote/remote_objects.h"
#include "engine/scheduler/scheduler.h"
#include "engine/sync/sync_services.h"
#include "engine/team/team_area.h"
#include "os/sync/hybrid_lock.h"

namespace mobius::engine {

class Access final : public RemoteObject {
 public:
  explicit Access(const SyncServices& services) : services_(services) {}

  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(const SyncServices& services, Team& team, mob_status_t mine,
                           std::unique_ptr<Access>* access);
  // Collective. If a member still has access, it fails at all members and frees nothing.
  mob_status_t release();

  Team& team() const { return area_.team(); }

  // Targets are ranks in the team. `call` names the public function in errors. `recovered` may be
  // null.
  mob_status_t lock_exclusive(const char* call, mob_rank_t target, int* recovered);
  mob_status_t lock_shared(const char* call, mob_rank_t target, int* recovered);
  mob_status_t try_exclusive(const char* call, mob_rank_t target, int* acquired, int* recovered);
  mob_status_t try_shared(const char* call, mob_rank_t target, int* acquired, int* recovered);
  mob_status_t unlock(const char* call, mob_rank_t target);

  // May return before access is gained (lazy_lock.h).
  mob_status_t start_lock(const char* call, mob_rank_t target, ClaimMode mode);
  void is_deferred() { deferred_.fetch_add(1, std::memory_order_relaxed); }
  void is_not_deferred() { deferred_.fetch_sub(1, std::memory_order_relaxed); }
  void gained(mob_rank_t target, ClaimMode mode, std::optional<schedule::Policy> hint);

  // Applies from the next lock on; without a policy that of the allocation or the job applies.
  void set_schedule(std::optional<schedule::Policy> hint);

  mob_status_t lock_all(const char* call, int* recovered);
  mob_status_t unlock_all(const char* call);

  bool attempt(Claim& claim, os::OwnerProbe* probe) override;
  void abandon(Claim& claim) override;
  void give_back(const Claim& claim) override;

 private:
  class ReadersWatch;

  bool is_here(mob_rank_t target) const { return team().place_here(target) >= 0; }
  RemoteLock remote(mob_rank_t target) const {
    return {team().map().world_rank(target), area_.name(), static_cast<uint64_t>(target)};
  }

  // For targets on this host.
  os::HybridLockWord& gate(mob_rank_t target) const {
    return static_cast<os::PaddedHybridLockWord*>(area_.memory())[team().place_here(target)];
  }
  // The number of shared accesses that `reader` has to `target`. The words of one reader lie
  // together. Only the reader writes them while it lives; for a reader on another host only the
  // target does.
  std::atomic<uint32_t>& shared(mob_rank_t reader, mob_rank_t target) const;
  // The counts of the calling process, for any target.
  std::atomic<uint32_t>& own_shared(mob_rank_t target) const {
    return is_here(target) ? shared(team().rank(), target)
                           : shared_elsewhere_[static_cast<size_t>(target)];
  }
  // For targets on other hosts: opens an epoch for the transfers during the access.
  void open_epoch(mob_rank_t target, Scheduler::Epoch epoch) const;
  std::optional<schedule::Policy> hint() const;

  bool has_exclusive(mob_rank_t target) const;
  bool is_read(mob_rank_t target, mob_rank_t* next) const;
  bool enter_shared(mob_rank_t reader, mob_rank_t target);
  bool leave_shared(mob_rank_t reader, mob_rank_t target);
  void leave_gate(mob_rank_t target) const;
  mob_status_t leave_own_shared(mob_rank_t target, bool* had);
  void forget_dead_readers(mob_rank_t target);
  mob_rank_t claiming_member(const Claim& claim) const;

  const SyncServices& services_;
  TeamArea area_;
  // By target, in a team on several hosts. Entries of targets on this host are unused.
  std::unique_ptr<std::atomic<uint32_t>[]> shared_elsewhere_;
  std::atomic<int> hint_ = -1;  // a policy, or -1
  // Accesses that threads of this process started and have not gained or ended.
  std::atomic<uint32_t> deferred_ = 0;
};

}  // namespace mobius::engine
