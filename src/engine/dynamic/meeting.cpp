// SPDX-License-Identifier: BSD-3-Clause
// The bridge of a meeting: of two teams of different jobs, all of whose members are in a job of
// their own besides.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/common/peers.h"
#include "engine/dynamic/bridges.h"
#include "engine/progress/completion.h"

namespace mobius::engine {

mob_status_t Bridges::open_meeting(mob_rank_t parents,
                                   const std::function<mob_status_t(const Bridge&)>& made) {
  constexpr const char* kCall = "mob_connect";
  Team& side = teams_.world();
  Place place;
  place.first = parents;
  place.count = services_.peers.size() - parents;
  std::vector<mob_rank_t> first_ones;
  for (mob_rank_t rank = 0; rank < parents; ++rank) first_ones.push_back(rank);
  Ends ends;
  ends.is_meeting = true;
  std::unique_ptr<Bridge> bridge;
  mob_status_t status =
      without_exceptions(kCall, [&] { return find_area(kCall, side, first_ones, &place, &ends); });
  if (status == MOB_OK) {
    status = without_exceptions(kCall, [&] { return open_on_hosts(ends, place, &bridge); });
  }
  if (status == MOB_OK) {
    bridge->is_meeting = true;
    status = made(*bridge);
  }
  if ((status = side.agree(status, kCall))) return status;
  if ((status = bridge->all->barrier())) return status;
  parent_ = live_.add(std::move(bridge));
  return parent_ != 0 ? MOB_OK : base::fail(MOB_ERR_MEMORY, "no memory for the bridge");
}

// The guest's engine frees the memory that the members of the bridge share, when it ends.
mob_status_t Bridges::disconnect_meeting(const char* call, uint64_t handle) {
  const mob_status_t completed = services_.completion.complete_all(call);
  const mob_status_t met = live_.find(handle)->all->barrier();
  live_.remove(handle);
  parent_ = 0;
  return met != MOB_OK ? met : completed;
}

}  // namespace mobius::engine
