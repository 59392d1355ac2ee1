// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Teams: ordered sets of processes that make collective calls together. This file has who is in a
// team and how its members meet; collective.h has what they do when they do.

#include <mobius/job.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "os/waiter.h"

namespace mobius::engine {

class Engine;

// Which process is which member: a stride through the world where that is so, else a list.
class TeamMap {
 public:
  static TeamMap strided(mob_rank_t start, mob_rank_t stride, mob_rank_t size);
  // Recognises strides.
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
  std::vector<mob_rank_t> list_;  // empty: the pattern says it all
};

// Bytes that Team::exchange() carries per member.
inline constexpr size_t kTeamExchangeBytes = 64;

// What the members of a team share: a header and one block per member. Valid as zeros.
struct TeamHeader {
  alignas(64) std::atomic<uint32_t> arrived;  // at the barrier that is under way
  alignas(64) std::atomic<uint32_t> generation;
  std::atomic<uint32_t> departed;  // members that will not look at the area again
};

struct TeamMember {
  alignas(64) std::atomic<uint32_t> arrivals;  // barriers that the member came to
  // Two, so that an exchange need not wait for the readers of the one before.
  alignas(64) unsigned char exchange[2][kTeamExchangeBytes];
};

class Team {
 public:
  // `area` is shared memory of area_bytes(map.size()), zero before the first member comes.
  // `offset` is its place in the window, for who frees it.
  Team(Engine& engine, TeamMap map, mob_rank_t rank, void* area, uint64_t offset);

  static size_t area_bytes(mob_rank_t size) {
    return sizeof(TeamHeader) + static_cast<size_t>(size) * sizeof(TeamMember);
  }

  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return map_.size(); }
  const TeamMap& map() const { return map_; }
  uint64_t area_offset() const { return offset_; }
  Engine& engine() const { return engine_; }

  // Collective, as are all below; one at a time per team.
  //
  // Returns when every member called it; what they wrote before is visible after (full fence).
  // MOB_ERR_PEER when a member died; the team is of no use then.
  mob_status_t barrier();

  // Gives every member the value of every member, by rank.
  template <typename T>
  mob_status_t exchange(const T& mine, std::vector<T>* all) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kTeamExchangeBytes);
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy to");
    const size_t turn = exchanges_++ % 2;
    std::memcpy(member(rank_).exchange[turn], &mine, sizeof(T));
    if (const mob_status_t status = barrier()) return status;
    all->resize(static_cast<size_t>(size()));
    for (mob_rank_t i = 0; i < size(); ++i) {
      std::memcpy(&(*all)[static_cast<size_t>(i)], member(i).exchange[turn], sizeof(T));
    }
    return MOB_OK;
  }

  // Agrees on the outcome of a collective step: MOB_OK everywhere if all passed MOB_OK, otherwise
  // the own error where there is one and MOB_ERR_PEER elsewhere. `what` names the call.
  mob_status_t agree(mob_status_t mine, const char* what);

  // Says, not collectively, that this member is done with the team's area; whether all are.
  bool depart() {
    // Both: who is last has seen the others' last use of the area.
    return header().departed.fetch_add(1, std::memory_order_acq_rel) + 1 ==
           static_cast<uint32_t>(size());
  }

 private:
  TeamHeader& header() const { return *static_cast<TeamHeader*>(area_); }
  TeamMember& member(mob_rank_t rank) const {
    return reinterpret_cast<TeamMember*>(static_cast<TeamHeader*>(area_) + 1)[rank];
  }
  mob_status_t barrier_by_flags();
  mob_status_t barrier_by_count();

  Engine& engine_;
  const TeamMap map_;
  const mob_rank_t rank_;
  void* const area_;
  const uint64_t offset_;
  const bool by_flags_;
  uint32_t barriers_ = 0;
  size_t exchanges_ = 0;
};

}  // namespace mobius::engine
