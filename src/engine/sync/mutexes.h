// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Mutexes that the members of a team host: one lock per cache line, in shared memory of the host.
// Members of other hosts claim them from the hosting process (remote/remote_locks.h).

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/remote/remote_objects.h"
#include "engine/sync/sync_services.h"
#include "engine/team/team_area.h"
#include "os/sync/hybrid_lock.h"

namespace mobius::engine {

class Mutexes final : public RemoteObject {
 public:
  explicit Mutexes(const SyncServices& services) : services_(services) {}

  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(const SyncServices& services, Team& team, size_t count,
                           mob_status_t mine, std::unique_ptr<Mutexes>* mutexes);

  // Collective. If a mutex that the caller hosts is held, it fails at all members and frees
  // nothing.
  mob_status_t release();

  Team& team() const { return area_.team(); }
  size_t count(mob_rank_t member) const { return first(member + 1) - first(member); }

  // The mutex at `index` of `member`, which hosts that many. `call` names the public function in
  // errors. `recovered` may be null.
  mob_status_t lock(const char* call, mob_rank_t member, size_t index, int* recovered);
  mob_status_t try_lock(const char* call, mob_rank_t member, size_t index, int* acquired,
                        int* recovered);
  mob_status_t unlock(const char* call, mob_rank_t member, size_t index);

  bool attempt(Claim& claim, os::OwnerProbe* probe) override;
  void give_back(const Claim& claim) override;

 private:
  // The index of a member's first mutex among those of all members.
  size_t first(mob_rank_t member) const {
    const auto index = static_cast<size_t>(member);
    return firsts_.empty() ? index * equal_count_ : firsts_[index];
  }
  // The same among those of this host, by the member's local rank.
  size_t first_here(mob_rank_t place) const {
    const auto index = static_cast<size_t>(place);
    return firsts_here_.empty() ? index * equal_count_ : firsts_here_[index];
  }
  bool is_here(mob_rank_t member) const { return team().place_here(member) >= 0; }
  // A mutex of a member of this host.
  os::HybridLockWord& mutex(mob_rank_t member, size_t index) const {
    return static_cast<os::PaddedHybridLockWord*>(
        area_.memory())[first_here(team().place_here(member)) + index];
  }
  RemoteLock remote(mob_rank_t member, size_t index) const {
    return {team().map().world_rank(member), area_.name(), index};
  }
  os::HybridLockWord* claimed(const Claim& claim) const;

  const SyncServices& services_;
  TeamArea area_;
  size_t equal_count_ = 0;      // of each member if firsts_ is empty
  std::vector<size_t> firsts_;  // by member; empty if all host equally many
  std::vector<size_t> firsts_here_;
};

}  // namespace mobius::engine
