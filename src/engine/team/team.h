// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Teams: ordered sets of processes that make collective calls together. This file has the members
// of a team; rounds.h has how members on one host meet, collective.h the calls.

#include <mobius/job.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/team/consensus.h"
#include "engine/team/rounds.h"
#include "engine/team/team_backend.h"
#include "engine/team/team_map.h"

namespace mobius::engine {

// Most bytes that Team::exchange() carries per member.
inline constexpr size_t kTeamExchangeBytes = kInlineBytes;

class Team {
 public:
  // `area` is shared memory of area_bytes(map.size()) that is zero before the first member comes.
  // `offset` is its place in the window, for the process that frees it.
  Team(const TeamServices& services, TeamMap map, mob_rank_t rank, void* area, uint64_t offset,
       Series series = Series::kCalls);
  // A team on several hosts. Its area is that of `local_team`, the team of the members on this
  // host. `id` identifies the team on all hosts.
  Team(const TeamServices& services, TeamBackends& backends, TeamMap map, mob_rank_t rank,
       uint64_t id, std::unique_ptr<Team> local_team);
  ~Team();

  static size_t area_bytes(mob_rank_t size) { return Rounds::area_bytes(size); }

  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return map_.size(); }
  const TeamMap& map() const { return map_; }
  uint64_t area_offset() const { return offset_; }
  // Null if all members are on this host.
  TeamBackend* backend() { return backend_.get(); }
  bool spans_hosts() const { return backend_ != nullptr; }
  // The team of the members on this host.
  Team& local_team();
  // A member's rank among the members of this host; -1 if it is on another host.
  mob_rank_t place_here(mob_rank_t member) const {
    return backend_ == nullptr ? member : backend_->place_here(member);
  }
  const TeamServices& services() const { return services_; }
  Rounds& rounds() { return rounds_; }
  // In a team on one host.
  Consensus& consensus() { return consensus_; }

  // Counts objects that this process has made on the team and not freed; they keep the team.
  void add_user() { users_.fetch_add(1, std::memory_order_relaxed); }
  void remove_user() { users_.fetch_sub(1, std::memory_order_relaxed); }
  int users() const { return users_.load(std::memory_order_relaxed); }

  // Collective, as are all below; one at a time per team.
  //
  // Returns when every member has called it; all writes of the members before it are visible after
  // (full fence). MOB_ERR_PEER when a member died; the team is unusable then.
  mob_status_t barrier() {
    if (backend_ != nullptr) [[unlikely]] {
      return barrier_inter_host();
    }
    if (size() > 1) return rounds_.barrier();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MOB_OK;
  }

  // Completes the calling thread's operations at their targets, then meets, as every barrier of the
  // interface does. Behind a fence no process may access the memory of a member that is not behind
  // it, too, so operations that cannot fail any more need not have been carried out when kFence
  // returns.
  enum class Kind { kBarrier, kFence };
  mob_status_t complete_and_meet(const char* call, Kind kind = Kind::kBarrier);

  // Gives every member the values of all members, by rank. `expected_ns` as in Rounds::meet().
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

  // Agrees on the outcome of a collective step. MOB_OK everywhere if all passed MOB_OK; otherwise a
  // member that passed an error gets that error, and the others get MOB_ERR_PEER. `what` names the
  // call.
  mob_status_t agree(mob_status_t mine, const char* what, uint64_t expected_ns = 0);

  // Whether a collective call was given up because a member died or left. Members for which it
  // succeeded may use its result.
  bool is_broken() const;

  // This member has no memory to go on with a collective call. The call fails for the others, too,
  // and the team is unusable.
  void resign() noexcept;

  // Null until a higher layer sets it.
  std::unique_ptr<TeamExtension>& extension() { return extension_; }

  // Not collective: this member does not use the team's area any more. Returns whether no member
  // does.
  bool depart();

 private:
  mob_status_t barrier_inter_host();
  mob_status_t meet_other(const char* call, mob_rank_t rank, Kind kind);
  mob_status_t exchange_across(const void* mine, size_t bytes, void* all);
  template <typename Call>
  mob_status_t go_inter_host(Call call);

  const TeamServices& services_;
  const TeamMap map_;
  const mob_rank_t rank_;
  const uint64_t offset_;
  Rounds rounds_;
  Consensus consensus_;
  std::unique_ptr<TeamBackend> backend_;  // null if all members are on this host
  std::atomic<int> users_ = 0;
  std::unique_ptr<TeamExtension> extension_;
};

}  // namespace mobius::engine
