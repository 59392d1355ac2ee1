// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Teams: ordered sets of processes that make collective calls together. This file has who is in a
// team; rounds.h has how its members meet, collective.h what they do when they do.

#include <mobius/job.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/team/rounds.h"
#include "engine/team/team_backend.h"
#include "engine/team/team_map.h"

namespace mobius::engine {

// Bytes that Team::exchange() carries per member.
inline constexpr size_t kTeamExchangeBytes = kInlineBytes;

class Team {
 public:
  // `area` is shared memory of area_bytes(map.size()), zero before the first member comes.
  // `offset` is its place in the window, for who frees it.
  Team(const TeamServices& services, TeamMap map, mob_rank_t rank, void* area, uint64_t offset,
       Series series = Series::kCalls);
  // On several hosts. The area is that of `mates`, the team of the members on this host; `id` names
  // the team on all hosts.
  Team(const TeamServices& services, TeamBackends& backends, TeamMap map, mob_rank_t rank,
       uint64_t id, std::unique_ptr<Team> mates);
  ~Team();

  static size_t area_bytes(mob_rank_t size) { return Rounds::area_bytes(size); }

  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return map_.size(); }
  const TeamMap& map() const { return map_; }
  uint64_t area_offset() const { return offset_; }
  // Null where all members are on this host.
  TeamBackend* backend() { return backend_.get(); }
  bool spans_hosts() const { return backend_ != nullptr; }
  // The members of this host, and how many they are.
  Team& mates();
  // A member's number among those of its host, if that is this one; else -1.
  mob_rank_t place_here(mob_rank_t member) const {
    return backend_ == nullptr ? member : backend_->place_here(member);
  }
  const TeamServices& services() const { return services_; }
  Rounds& rounds() { return rounds_; }

  // What this process has made on the team and not freed; a team with such things is kept.
  void add_user() { users_.fetch_add(1, std::memory_order_relaxed); }
  void remove_user() { users_.fetch_sub(1, std::memory_order_relaxed); }
  int users() const { return users_.load(std::memory_order_relaxed); }

  // Collective, as are all below; one at a time per team.
  //
  // Returns when every member called it; what they wrote before is visible after (full fence).
  // MOB_ERR_PEER when a member died; the team is of no use then.
  mob_status_t barrier() {
    if (backend_ != nullptr) [[unlikely]] {
      return barrier_across();
    }
    if (size() > 1) return rounds_.barrier();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MOB_OK;
  }

  // The same, and completes what the calling thread has started, at its targets, before; as every
  // barrier of the interface does. Behind a fence nobody has to do with the memory of a member that
  // is not behind it, too: what cannot fail any more need not have been done there before.
  enum class Kind { kBarrier, kFence };
  mob_status_t complete_and_meet(const char* call, Kind kind = Kind::kBarrier);

  // Gives every member the value of every member, by rank. `expected_ns` as in Rounds::meet().
  template <typename T>
  mob_status_t exchange(const T& mine, std::vector<T>* all, uint64_t expected_ns = 0) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kTeamExchangeBytes);
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy to");
    all->resize(static_cast<size_t>(size()));  // before others count on this member
    if (backend_ != nullptr) {
      return exchange_across(&mine, sizeof(T), all->data());
    }
    mob_status_t status = rounds_.begin(Rounds::Role::kWrites, Rounds::Bulk::kNone);
    if (status != MOB_OK) return status;
    std::memcpy(rounds_.line(rank_), &mine, sizeof(T));
    if ((status = rounds_.meet(expected_ns))) return status;
    for (mob_rank_t i = 0; i < size(); ++i) {
      std::memcpy(&(*all)[static_cast<size_t>(i)], rounds_.line(i), sizeof(T));
    }
    rounds_.end();
    return MOB_OK;
  }

  // Agrees on the outcome of a collective step: MOB_OK everywhere if all passed MOB_OK, otherwise
  // the own error where there is one and MOB_ERR_PEER elsewhere. `what` names the call.
  mob_status_t agree(mob_status_t mine, const char* what, uint64_t expected_ns = 0);

  // Whether a collective call was given up because a member died or left. What it was about may be
  // in use by members for whom it succeeded.
  bool is_broken() const;

  // This member has no memory to go on with a collective call: that fails for the others, too, and
  // the team is of no use any more.
  void resign() noexcept;

  // Null until a higher layer sets it.
  std::unique_ptr<TeamExtension>& extension() { return extension_; }

  // Says, not collectively, that this member is done with the team's area; whether all who use it
  // are.
  bool depart();

 private:
  mob_status_t barrier_across();
  mob_status_t meet_other(const char* call, mob_rank_t rank, Kind kind);
  mob_status_t exchange_across(const void* mine, size_t bytes, void* all);
  template <typename Call>
  mob_status_t go_across(Call call);

  const TeamServices& services_;
  const TeamMap map_;
  const mob_rank_t rank_;
  const uint64_t offset_;
  Rounds rounds_;
  std::unique_ptr<TeamBackend> backend_;  // null where all members are on this host
  std::atomic<int> users_ = 0;
  std::unique_ptr<TeamExtension> extension_;
};

}  // namespace mobius::engine
