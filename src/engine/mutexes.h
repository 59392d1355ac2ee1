// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Mutexes that the members of a team host: one lock per cache line in memory of the team.

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/team_area.h"
#include "os/hybrid_lock.h"

namespace mobius::engine {

class Mutexes {
 public:
  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(Team& team, size_t count, mob_status_t mine,
                           std::unique_ptr<Mutexes>* mutexes);

  // Collective. With a mutex held that the caller hosts, fails everywhere and frees nothing.
  mob_status_t release();

  Team& team() const { return area_.team(); }
  size_t count(mob_rank_t member) const { return first(member + 1) - first(member); }
  os::HybridLockWord& mutex(mob_rank_t member, size_t index) const {
    return static_cast<os::PaddedHybridLockWord*>(area_.memory())[first(member) + index];
  }

 private:
  // Where the mutexes of a member start.
  size_t first(mob_rank_t member) const {
    const auto index = static_cast<size_t>(member);
    return firsts_.empty() ? index * equal_count_ : firsts_[index];
  }

  TeamArea area_;
  size_t equal_count_ = 0;      // of each member …
  std::vector<size_t> firsts_;  // … unless this is not empty
};

}  // namespace mobius::engine
