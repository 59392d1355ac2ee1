// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared and exclusive access to the members of a team.
//
// Each member has a gate: a lock that who has exclusive access holds throughout. Each process
// counts, in words of its own for each member, the shared accesses it has. To gain shared access
// when nobody is at the gate it counts itself, then looks at the gate; who has passed the gate
// looks at all the counts, so that of the two at least one sees the other, and it is the reader
// that steps back. Readers that find somebody at the gate queue up there too, which makes the order
// fair.
//
// Every word says whose it is, so that what a dead process left can be taken back.
//
// For a member of another host the process of that member does all this (remote/remote_locks.h),
// with words that name the thread and the process that claim.

#include <atomic>
#include <memory>
#include <optional>

#include "engine/remote/remote_objects.h"
#include "engine/scheduler/scheduler.h"
#include "engine/sync/sync_services.h"
#include "engine/team/team_area.h"
#include "os/hybrid_lock.h"

namespace mobius::engine {

class Access final : public RemoteObject {
 public:
  explicit Access(const SyncServices& services) : services_(services) {}

  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(const SyncServices& services, Team& team, mob_status_t mine,
                           std::unique_ptr<Access>* access);
  // Collective. While a member has access, fails everywhere and frees nothing.
  mob_status_t release();

  Team& team() const { return area_.team(); }

  // Members by their ranks in the team; `call` names the public function in errors. Of the results,
  // `recovered` may be null.
  mob_status_t lock_exclusive(const char* call, mob_rank_t target, int* recovered);
  mob_status_t lock_shared(const char* call, mob_rank_t target, int* recovered);
  mob_status_t try_exclusive(const char* call, mob_rank_t target, int* acquired, int* recovered);
  mob_status_t try_shared(const char* call, mob_rank_t target, int* acquired, int* recovered);
  mob_status_t unlock(const char* call, mob_rank_t target);

  // May return before there is access (lazy_lock.h, which says what became of it).
  mob_status_t start_lock(const char* call, mob_rank_t target, ClaimMode mode);
  void is_deferred() { deferred_.fetch_add(1, std::memory_order_relaxed); }
  void is_not_deferred() { deferred_.fetch_sub(1, std::memory_order_relaxed); }
  void gained(mob_rank_t target, ClaimMode mode, std::optional<schedule::Policy> hint);

  // From the next lock on; none: as the allocation, or the job.
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

  // Of targets on this host.
  os::HybridLockWord& gate(mob_rank_t target) const {
    return static_cast<os::PaddedHybridLockWord*>(area_.memory())[team().place_here(target)];
  }
  // Shared accesses to `target` that `reader` has. One reader's words lie together: it is their
  // only writer while it lives, or, of a reader on another host, the target is.
  std::atomic<uint32_t>& shared(mob_rank_t reader, mob_rank_t target) const;
  // Those of the calling process, to any target.
  std::atomic<uint32_t>& own_shared(mob_rank_t target) const {
    return is_here(target) ? shared(team().rank(), target)
                           : shared_elsewhere_[static_cast<size_t>(target)];
  }
  // Of targets on other hosts: what is transferred while there is access to them.
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
  // By target, in a team on several hosts; those on this host are not used.
  std::unique_ptr<std::atomic<uint32_t>[]> shared_elsewhere_;
  std::atomic<int> hint_ = -1;          // a policy, or none
  std::atomic<uint32_t> deferred_ = 0;  // started by threads of this process, not gained or ended
};

}  // namespace mobius::engine
