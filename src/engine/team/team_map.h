// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>

#include <cstddef>
#include <span>
#include <vector>

namespace mobius::engine {

// Maps the members of a team to processes: by a stride through the world if possible, else by a
// list.
class TeamMap {
 public:
  static TeamMap strided(mob_rank_t start, mob_rank_t stride, mob_rank_t size);
  // Finds a stride if there is one.
  static TeamMap of(std::span<const mob_rank_t> world_ranks);

  mob_rank_t size() const { return size_; }
  mob_rank_t world_rank(mob_rank_t rank) const {
    return list_.empty() ? start_ + rank * stride_ : list_[static_cast<size_t>(rank)];
  }
  // Rank in the team of a process of the world; -1 if it is not a member.
  mob_rank_t rank_of(mob_rank_t world_rank) const;

 private:
  mob_rank_t start_ = 0;
  mob_rank_t stride_ = 1;
  mob_rank_t size_ = 0;
  std::vector<mob_rank_t> list_;  // empty: the stride is enough
};

}  // namespace mobius::engine
