// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team.h"

#include <new>
#include <utility>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/common/peers.h"
#include "engine/network/link.h"
#include "engine/progress/completion.h"
#include "engine/remote/remote_objects.h"
#include "engine/scheduler/scheduler.h"
#include "engine/transfer/router.h"

namespace mobius::engine {

using base::fail;

Team::Team(const TeamServices& services, TeamMap map, mob_rank_t rank, void* area, uint64_t offset,
           Series series)
    : services_(services),
      map_(std::move(map)),
      rank_(rank),
      offset_(offset),
      rounds_(services, map_, rank, area, series),
      consensus_(services, map_, rank, rounds_) {}

Team::Team(const TeamServices& services, TeamBackends& backends, TeamMap map, mob_rank_t rank,
           uint64_t id, std::unique_ptr<Team> local_team)
    : services_(services),
      map_(std::move(map)),
      rank_(rank),
      offset_(local_team->area_offset()),
      rounds_(services, map_, rank, nullptr, Series::kCalls),
      consensus_(services, map_, rank, rounds_),
      backend_(backends.make_backend(map_, rank, id, std::move(local_team))) {}

Team::~Team() = default;

Team& Team::local_team() { return backend_ != nullptr ? backend_->local_team() : *this; }

// For setup calls and barriers: their callers do not catch exceptions, or do not know the team.
template <typename Call>
mob_status_t Team::go_inter_host(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    resign();
    return fail(MOB_ERR_MEMORY, "this process has no memory left for a collective call");
  }
}

mob_status_t Team::barrier_inter_host() {
  services_.remote_objects.locks().settle();
  return go_inter_host([this] { return backend_->barrier(); });
}

// For a team of two. This member's barrier message reaches the other one after its puts there, and
// after its gets were read: one round trip for both. With a third process, which could ask the
// other one for the data before it has come, the answers must be here first.
mob_status_t Team::meet_other(const char* call, mob_rank_t rank, Kind kind) {
  const mob_status_t ordered = services_.router.order_transfers();
  // In a job of two, later operations of this process reach the other one later.
  const bool may_be_done = kind == Kind::kFence && services_.peers.bound() == 2;
  Scheduler& scheduler = services_.scheduler;
  {
    const Link::Joined with_the_barrier;
    may_be_done ? scheduler.issue_for_fence(rank) : scheduler.issue(rank);
  }
  const mob_status_t met = barrier();
  const bool is_done = may_be_done && met == MOB_OK && scheduler.puts_surely(rank);
  const mob_status_t completed = is_done ? services_.completion.flush(call, rank, false)
                                         : services_.completion.complete_all(call);
  if (met != MOB_OK) return met;
  return ordered != MOB_OK ? ordered : completed;
}

mob_status_t Team::complete_and_meet(const char* call, Kind kind) {
  const mob_rank_t other = backend_ != nullptr ? backend_->only_other() : -1;
  if (other >= 0 && !services_.instrumentation.hooked() &&
      services_.completion.all_at(map_.world_rank(other)) != 0) {
    return meet_other(call, map_.world_rank(other), kind);
  }
  // The others wait for this member, also after an error of a transfer.
  const mob_status_t completed = services_.completion.complete_all(call);
  const mob_status_t met = barrier();
  return met != MOB_OK ? met : completed;
}

mob_status_t Team::exchange_across(const void* mine, size_t bytes, void* all) {
  return go_inter_host([&] { return backend_->exchange(mine, bytes, all); });
}

bool Team::is_broken() const {
  return backend_ != nullptr ? backend_->is_broken() : rounds_.is_broken();
}

void Team::resign() noexcept {
  if (backend_ != nullptr) return backend_->resign();
  rounds_.give_up({TeamFailure::Kind::kNoMemory, services_.peers.rank()});
}

bool Team::depart() {
  return backend_ != nullptr ? backend_->local_team().depart() : rounds_.depart();
}

mob_status_t Team::agree(mob_status_t mine, const char* what, uint64_t expected_ns) {
  std::vector<mob_status_t> all;
  const mob_status_t status = exchange(mine, &all, expected_ns);
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
