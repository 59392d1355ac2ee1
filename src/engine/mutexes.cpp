// SPDX-License-Identifier: BSD-3-Clause
#include "engine/mutexes.h"

#include <algorithm>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/locks.h"

namespace mobius::engine {

mob_status_t Mutexes::make(Team& team, size_t count, mob_status_t mine,
                           std::unique_ptr<Mutexes>* mutexes) {
  std::vector<size_t> counts;
  if (const mob_status_t status = team.exchange(mine == MOB_OK ? count : 0, &counts)) return status;
  auto made = std::make_unique<Mutexes>();
  made->equal_count_ = counts[0];
  size_t total = 0;
  const bool equal = std::ranges::all_of(counts, [&](size_t c) { return c == counts[0]; });
  if (!equal) made->firsts_.push_back(0);
  for (const size_t c : counts) {
    total += c;
    if (!equal) made->firsts_.push_back(total);
  }
  if (const mob_status_t status = made->area_.make(team, total * sizeof(os::PaddedHybridLockWord),
                                                   mine, "mob_mutexes_create")) {
    return status;
  }
  *mutexes = std::move(made);
  return MOB_OK;
}

mob_status_t Mutexes::release() {
  constexpr const char* kCall = "mob_mutexes_free";
  // Everybody has released theirs before anybody looks.
  mob_status_t status = team().barrier();
  const mob_rank_t self = team().rank();
  for (size_t i = 0; i < count(self) && status == MOB_OK; ++i) {
    if (!is_held(team().engine(), mutex(self, i))) continue;
    status = base::fail(MOB_ERR_STATE, "%s: mutex %zu of rank %d is held; unlock it first", kCall,
                        i, team().map().world_rank(self));
  }
  if ((status = team().agree(status, kCall))) return status;
  return area_.release();
}

}  // namespace mobius::engine
