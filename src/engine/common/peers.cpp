// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/peers.h"

namespace mobius::engine {

bool Peers::is_dead(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  if (index >= 0) return liveness().is_dead(index);
  return reports_.has_lost(rank) || job_.directory()->is_dead(rank);
}

bool Peers::is_leaving(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  return index >= 0 ? liveness().is_leaving(index) : job_.directory()->has_left(rank);
}

bool Peers::has_left(mob_rank_t rank) {
  const mob_rank_t index = host_index(rank);
  return index >= 0 ? liveness().has_left(index) : job_.directory()->has_left(rank);
}

}  // namespace mobius::engine
