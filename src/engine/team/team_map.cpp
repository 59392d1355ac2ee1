// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team_map.h"

#include <algorithm>

namespace mobius::engine {

TeamMap TeamMap::strided(mob_rank_t start, mob_rank_t stride, mob_rank_t size) {
  TeamMap map;
  map.start_ = start;
  map.stride_ = stride;
  map.size_ = size;
  return map;
}

TeamMap TeamMap::of(std::span<const mob_rank_t> world_ranks) {
  const mob_rank_t stride = world_ranks.size() > 1 ? world_ranks[1] - world_ranks[0] : 1;
  TeamMap map = strided(world_ranks[0], stride, static_cast<mob_rank_t>(world_ranks.size()));
  for (size_t i = 0; i < world_ranks.size(); ++i) {
    if (world_ranks[i] != map.start_ + static_cast<mob_rank_t>(i) * stride) {
      map.list_.assign(world_ranks.begin(), world_ranks.end());
      break;
    }
  }
  return map;
}

mob_rank_t TeamMap::rank_of(mob_rank_t world_rank) const {
  if (list_.empty()) {
    const mob_rank_t distance = world_rank - start_;
    if (distance % stride_ != 0) return -1;
    const mob_rank_t rank = distance / stride_;
    return rank >= 0 && rank < size_ ? rank : -1;
  }
  const auto found = std::ranges::find(list_, world_rank);
  return found == list_.end() ? -1 : static_cast<mob_rank_t>(found - list_.begin());
}

}  // namespace mobius::engine
