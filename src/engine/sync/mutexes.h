// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Mutexes that the members of a team host: one lock per cache line in memory of the host's members.
// Those of other hosts are claimed of the hosting process (remote/remote_locks.h).

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/remote/remote_objects.h"
#include "engine/sync/sync_services.h"
#include "engine/team/team_area.h"
#include "os/hybrid_lock.h"

namespace mobius::engine {

class Mutexes final : public RemoteObject {
 public:
  explicit Mutexes(const SyncServices& services) : services_(services) {}

  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(const SyncServices& services, Team& team, size_t count,
                           mob_status_t mine, std::unique_ptr<Mutexes>* mutexes);

  // Collective. With a mutex held that the caller hosts, fails everywhere and frees nothing.
  mob_status_t release();

  Team& team() const { return area_.team(); }
  size_t count(mob_rank_t member) const { return first(member + 1) - first(member); }

  // The mutex at `index` of `member`, which hosts that many. `call` names the public function in
  // errors; of the results, `recovered` may be null.
  mob_status_t lock(const char* call, mob_rank_t member, size_t index, int* recovered);
  mob_status_t try_lock(const char* call, mob_rank_t member, size_t index, int* acquired,
                        int* recovered);
  mob_status_t unlock(const char* call, mob_rank_t member, size_t index);

  bool attempt(Claim& claim, os::OwnerProbe* probe) override;
  void give_back(const Claim& claim) override;

 private:
  // Where the mutexes of a member start among those of all.
  size_t first(mob_rank_t member) const {
    const auto index = static_cast<size_t>(member);
    return firsts_.empty() ? index * equal_count_ : firsts_[index];
  }
  // … and among those of this host, where `place` is the member's number.
  size_t first_here(mob_rank_t place) const {
    const auto index = static_cast<size_t>(place);
    return firsts_here_.empty() ? index * equal_count_ : firsts_here_[index];
  }
  bool is_here(mob_rank_t member) const { return team().place_here(member) >= 0; }
  // Of a member of this host.
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
  size_t equal_count_ = 0;      // of each member …
  std::vector<size_t> firsts_;  // … unless this is not empty
  std::vector<size_t> firsts_here_;
};

}  // namespace mobius::engine
