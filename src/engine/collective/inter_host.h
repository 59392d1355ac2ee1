// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A team whose members are on several hosts. The members of each host form a team of their own, the
// local peers, and meet in shared memory. Hosts exchange messages (team/team_messages.h). Most
// calls send one message for each pair of hosts that has data to exchange, between the first
// members of the two hosts, the leaders. Only large blocks go from member to member.
//
// A leader whose host fails tells the others, which wait for its data. Every call takes all its
// messages, also after an error, so that the next call does not find them.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/collective/collective.h"
#include "engine/team/team.h"
#include "engine/team/team_backend.h"
#include "engine/team/team_failure.h"
#include "engine/team/team_map.h"
#include "engine/team/team_messages.h"

namespace mobius::engine {

// Members are identified by their ranks in the whole team.
class InterHost final : public TeamBackend {
 public:
  // `map` outlives this. `id` identifies the team on all hosts. `local_team` is the team of the
  // members of this host, by increasing rank.
  InterHost(const TeamServices& services, const TeamMap& map, mob_rank_t rank, uint64_t id,
            std::unique_ptr<Team> local_team);
  ~InterHost() override;

  // The backend of a team; null if all its members are on this host.
  static InterHost* of(Team& team) { return static_cast<InterHost*>(team.backend()); }

  Team& local_team() override { return *local_team_; }
  uint64_t id() const { return id_; }
  mob_rank_t place_here(mob_rank_t member) const override {
    return is_local(member) ? local_rank(member) : -1;
  }
  mob_rank_t only_other() const override { return map_.size() == 2 ? 1 - rank_ : -1; }
  bool is_broken() const override;
  void resign() noexcept override;

  // Collective over the team; contracts are in team.h and collective.h.
  mob_status_t barrier() override;
  mob_status_t exchange(const void* mine, size_t bytes, void* all) override {
    return allgather(mine, all, Blocks::packed(bytes));
  }
  mob_status_t broadcast(mob_rank_t root, void* buffer, size_t bytes);
  mob_status_t gather(mob_rank_t root, const void* in, size_t mine, void* out,
                      const Blocks& blocks);
  mob_status_t allgather(const void* in, void* out, const Blocks& blocks);
  mob_status_t scatter(mob_rank_t root, const void* in, void* out, size_t bytes);
  mob_status_t alltoall(const void* in, const Blocks& in_blocks, void* out,
                        const Blocks& out_blocks);
  mob_status_t fold(FoldResult result, const Combiner& combine, const void* in, void* out,
                    size_t count);

 private:
  class MembersWatch;

  // The members of one host; the first is the leader.
  using Group = std::vector<mob_rank_t>;

  // The bytes that a leader sends to the leader of another host, and those it receives.
  struct Parcel {
    const char* out = nullptr;
    size_t out_bytes = 0;
    char* in = nullptr;
    size_t in_bytes = 0;
  };

  const Group& own() const { return groups_[own_]; }
  mob_rank_t leader(size_t group) const { return groups_[group].front(); }
  bool leads() const { return leader(own_) == rank_; }
  size_t group_of(mob_rank_t member) const { return group_of_[static_cast<size_t>(member)]; }
  bool is_local(mob_rank_t member) const { return group_of(member) == own_; }
  mob_rank_t local_rank(mob_rank_t member) const;

  // Runs the step also after an error. The first error is kept.
  template <typename Step>
  static void go_on(mob_status_t* status, Step step) {
    if (*status == MOB_OK) {
      *status = step();
      return;
    }
    const base::ErrorsOfOthers aside;
    static_cast<void>(step());
  }

  // Messages. If a message cannot be sent or received, a member is lost, and the team gives up.
  mob_status_t send(mob_rank_t member, const void* bytes, size_t count) {
    return send(member, TeamMessage::Kind::kWhole, bytes, count);
  }
  mob_status_t send(mob_rank_t member, TeamMessage::Kind kind, const void* bytes, size_t count);
  // The same; after an error of the call here it sends that error instead.
  void send_outcome(mob_status_t* status, mob_rank_t member, const void* bytes, size_t count);
  // `origin` is the member that the awaited one may itself wait for.
  mob_status_t take(const char* call, mob_rank_t member, mob_rank_t origin, TeamMessage* message);
  mob_status_t receive(const char* call, mob_rank_t member, mob_rank_t origin, void* bytes,
                       size_t count);
  mob_status_t receive(const char* call, mob_rank_t member, void* bytes, size_t count) {
    return receive(call, member, member, bytes, count);
  }

  // Data up to this size travel to the local members in one broadcast with the leader's status.
  static constexpr size_t kToldBytes = size_t{4} << 10;

  // Called by leaders. `status` is the result of the call on this host so far.
  mob_status_t meet_leaders(mob_status_t status);
  mob_status_t exchange_parcels(const char* call, mob_status_t status,
                                const std::vector<Parcel>& parcels);
  mob_status_t exchange_leaders(mob_status_t status, std::vector<char>& packed,
                                const std::vector<size_t>& starts);
  // Called by all members of a host on which the call has succeeded so far. The leader passes on
  // how the exchange between leaders went, with its data for the local members.
  mob_status_t share_outcome(mob_status_t status, void* data = nullptr, size_t bytes = 0);
  mob_status_t hand_on(mob_status_t status, void* data, size_t bytes);

  mob_status_t broadcast_to_hosts(mob_rank_t root, void* buffer, size_t bytes);
  mob_status_t gather_here(mob_rank_t root, const void* in, size_t mine, void* out,
                           const Blocks& blocks, const std::vector<size_t>& sizes);
  mob_status_t gather_there(mob_status_t status, mob_rank_t root, const void* in, size_t mine,
                            bool by_lists, const std::vector<size_t>& sizes);
  mob_status_t check_gathered(mob_rank_t member, size_t bytes, const Blocks& blocks) const;
  mob_status_t take_gathered(size_t group, void* out, const Blocks& blocks);
  mob_status_t take_from_each(const Group& members, void* out, const Blocks& blocks);
  bool goes_by_members(size_t group, size_t bytes) const;
  mob_status_t scatter_here(mob_rank_t root, const void* in, void* out, size_t bytes);
  mob_status_t scatter_there(mob_rank_t root, void* out, size_t bytes);

  // All to all. `groups` says for each host whether its blocks go from member to member.
  bool goes_by_leaders(size_t bytes) const;
  mob_status_t alltoall_by_leaders(const void* in, void* out, size_t bytes);
  mob_status_t exchange_rows(mob_status_t status, std::vector<char>& rows, size_t bytes);
  mob_status_t alltoall_by_members(const void* in, const Blocks& in_blocks, void* out,
                                   const Blocks& out_blocks);
  void send_to_members(mob_status_t* status, const std::vector<char>& groups, const void* in,
                       const Blocks& blocks);
  void exchange_with_local_peers(mob_status_t* status, const void* in, const Blocks& in_blocks,
                                 void* out, const Blocks& out_blocks);
  void receive_from_members(mob_status_t* status, const std::vector<char>& groups, void* out,
                            const Blocks& blocks);
  class Alltoallv;
  mob_status_t alltoallv(const void* in, const Blocks& in_blocks, void* out,
                         const Blocks& out_blocks);
  mob_status_t fold_by_hosts(FoldResult result, const Combiner& combine, const void* in, void* out,
                             size_t count);
  mob_status_t fold_in_order(FoldResult result, const Combiner& combine, const char* in, char* out,
                             size_t count);
  mob_status_t note_one_way(mob_status_t status, size_t bytes);
  // All members have met.
  void forget_one_way() { one_way_ = one_way_bytes_ = 0; }
  void give_up();
  // Fails as every call of a broken team. Messages that lie there may belong to the failed call.
  mob_status_t refuse();
  mob_status_t ended(mob_status_t status);

  const TeamServices& services_;
  const TeamMap& map_;
  const mob_rank_t rank_;
  const uint64_t id_;
  const std::unique_ptr<Team> local_team_;
  std::vector<Group> groups_;  // ordered by their leaders
  std::vector<uint32_t> group_of_;
  size_t own_ = 0;
  size_t largest_group_ = 0;
  size_t one_way_ = 0;        // calls since all members last met
  size_t one_way_bytes_ = 0;  // bytes in those calls
  TeamFailure loss_;          // the failure that this member has found or heard of
};

// Makes the backends of teams.
class InterHostBackends final : public TeamBackends {
 public:
  explicit InterHostBackends(const TeamServices& services) : services_(services) {}
  std::unique_ptr<TeamBackend> make_backend(const TeamMap& map, mob_rank_t rank, uint64_t id,
                                            std::unique_ptr<Team> local_team) override;

 private:
  const TeamServices& services_;
};

}  // namespace mobius::engine
