// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team.h"

#include <utility>

#include "base/status.h"

namespace mobius::engine {

using base::fail;

Team::Team(Engine& engine, TeamMap map, mob_rank_t rank, void* area, uint64_t offset)
    : engine_(engine),
      map_(std::move(map)),
      rank_(rank),
      offset_(offset),
      rounds_(engine, map_, rank, area) {}

mob_status_t Team::agree(mob_status_t mine, const char* what) {
  std::vector<mob_status_t> all;
  const mob_status_t status = exchange(mine, &all);
  if (mine != MOB_OK) return mine;
  if (status != MOB_OK) return status;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != MOB_OK) {
      return fail(MOB_ERR_PEER, "%s failed here because it failed at rank %d with %s", what,
                  map_.world_rank(static_cast<mob_rank_t>(i)), mob_status_name(all[i]));
    }
  }
  return MOB_OK;
}

}  // namespace mobius::engine
