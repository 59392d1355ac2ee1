// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "engine/engine.h"
#include "os/topology.h"

namespace mobius::engine {
namespace {

using base::fail;

// Up to here everyone looks at everyone's flag: one trip of a cache line and no line that all
// change. Beyond, and where members share processors, one counter costs less work.
constexpr mob_rank_t kMostFlags = 16;

// Ends a wait for members of a team when one of them cannot come any more.
class MembersWatch final : public os::Watch {
 public:
  explicit MembersWatch(const Team& team) : team_(team) {}

  mob_status_t look() override {
    job::Liveness& liveness = team_.engine().liveness();
    for (mob_rank_t i = 0; i < team_.size(); ++i) {
      const mob_rank_t rank = team_.map().world_rank(i);
      if (liveness.is_dead(Engine::host_index(rank))) {
        return fail(MOB_ERR_PEER, "rank %d died; this collective call cannot complete", rank);
      }
      if (liveness.has_left(Engine::host_index(rank))) {
        return fail(MOB_ERR_PEER,
                    "rank %d has left the job (mob_finalize) while others are in a collective call",
                    rank);
      }
    }
    return MOB_OK;
  }

 private:
  const Team& team_;
};

}  // namespace

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

Team::Team(Engine& engine, TeamMap map, mob_rank_t rank, void* area, uint64_t offset)
    : engine_(engine),
      map_(std::move(map)),
      rank_(rank),
      area_(area),
      offset_(offset),
      by_flags_(map_.size() <= kMostFlags && map_.size() <= os::processors_allowed()) {}

mob_status_t Team::barrier() {
  if (size() == 1) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MOB_OK;
  }
  return by_flags_ ? barrier_by_flags() : barrier_by_count();
}

mob_status_t Team::barrier_by_flags() {
  const uint32_t turn = ++barriers_;
  // Release pairs with the acquire below in every other member. Sequentially consistent: also the
  // fence that ring_all() needs between the change and its look at sleepers.
  member(rank_).arrivals.exchange(turn, std::memory_order_seq_cst);
  for (mob_rank_t i = 0; i < size(); ++i) {
    if (i != rank_) engine_.ring_after_fence(map_.world_rank(i));
  }
  mob_rank_t next = 0;  // those before it are known to have come
  const auto all_came = [&] {
    for (; next < size(); ++next) {
      // A member that is ahead has a larger number; numbers wrap.
      const uint32_t theirs = member(next).arrivals.load(std::memory_order_acquire);
      if (static_cast<int32_t>(theirs - turn) < 0) return false;
    }
    return true;
  };
  if (all_came()) return MOB_OK;
  MembersWatch watch(*this);
  return engine_.wait_until(all_came, &watch);
}

mob_status_t Team::barrier_by_count() {
  TeamHeader& shared = header();
  const uint32_t generation = shared.generation.load(std::memory_order_relaxed);
  const uint32_t before = shared.arrived.fetch_add(1, std::memory_order_seq_cst);
  if (before + 1 == static_cast<uint32_t>(size())) {
    shared.arrived.store(0, std::memory_order_relaxed);
    // Release pairs with the acquire below: the reset above and everything that any member wrote
    // before it came is visible to those who go on.
    shared.generation.exchange(generation + 1, std::memory_order_seq_cst);
    for (mob_rank_t i = 0; i < size(); ++i) {
      if (i != rank_) engine_.ring_after_fence(map_.world_rank(i));
    }
    return MOB_OK;
  }
  MembersWatch watch(*this);
  return engine_.wait_until(
      [&] { return shared.generation.load(std::memory_order_acquire) != generation; }, &watch);
}

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
