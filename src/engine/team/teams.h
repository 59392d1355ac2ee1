// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Making and freeing teams.

#include <mobius/team.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/common/registry.h"
#include "engine/team/team.h"

namespace mobius::engine {

class Teams {
 public:
  Teams(const TeamServices& services, TeamBackends& backends)
      : services_(services), backends_(backends) {}

  // Makes the job's first team; its members have met by other means. `status` says whether this
  // process is ready for it. Collective over the processes of a host: fails at all of them or at
  // none.
  mob_status_t open_world(mob_status_t status);

  // A team of all processes for the last calls of the job, which cannot be taken for calls of the
  // world. Local; called once.
  mob_status_t open_end(std::unique_ptr<Team>* team);

  // The members of `parent` with the same `colour` become a team, ordered by `key`, then by their
  // rank in `parent`. A member with a negative colour takes part without joining a team: `*handle`
  // is 0. Collective over `parent`; a member whose arguments are wrong, which `mine` says, takes
  // part, too. `call` names the public function in error texts.
  mob_status_t split(const char* call, Team& parent, mob_status_t mine, int colour, int key,
                     uint64_t* handle);

  // As split(), with the listed ranks of `parent`, in that order, as the new team. All listed
  // members pass the same list, which is valid unless `mine` says otherwise. Disjoint lists make
  // several teams.
  mob_status_t select(const char* call, Team& parent, mob_status_t mine,
                      std::span<const mob_rank_t> ranks, uint64_t* handle);

  // As select(), with ranks of the world; collective over the listed processes only. The program's
  // function exchanges their data. The list is valid.
  mob_status_t gather(const char* call, std::span<const mob_rank_t> ranks, mob_exchange_t exchange,
                      void* argument, uint64_t* handle);

  // A team of the members of `team`, which is on one host, that are alive, in the same order.
  // Collective over these, which get the same team, or an error all of them, even if more members
  // die meanwhile.
  mob_status_t shrink(const char* call, Team& team, mob_status_t mine, uint64_t* handle);

  // A team of this process alone, for the caller; end_own() frees it. Local.
  mob_status_t make_own(std::unique_ptr<Team>* team);
  void end_own(Team& team);

  // Frees a team other than the world. Collective over it.
  mob_status_t release(uint64_t handle);

  // The team of a handle, which may be any number; null if it is not live.
  Team* find(uint64_t handle) const { return live_.find(handle); }
  Team& world() const { return *world_; }

  // For teams whose members agree in another way. Makes the area of `size` members on this host;
  // one of them calls it.
  mob_status_t make_area(mob_rank_t size, uint64_t* offset);
  // A team with such an area on each host. `id` identifies it on all hosts. Local.
  mob_status_t open(TeamMap map, mob_rank_t rank, uint64_t area_offset, uint64_t id,
                    std::unique_ptr<Team>* team) {
    return adopt(std::move(map), rank, area_offset, id, team);
  }
  // No member on this host uses the area any more.
  void release_area(uint64_t offset, mob_rank_t size);

  // This process does not use the world's area any more. The last member frees it.
  void leave_world();
  void close();

 private:
  struct Choice;
  mob_status_t hear(const char* call, Team& parent, const Choice& mine, std::vector<Choice>* all);
  mob_status_t make(Team& parent, const TeamMap* map, mob_rank_t rank, uint64_t* handle);

  // Lists the members of a team that are on this host; returns whether all are.
  bool find_local_members(const TeamMap& map, std::vector<mob_rank_t>* local_members) const;
  mob_status_t adopt(TeamMap map, mob_rank_t team_rank, uint64_t area_offset, uint64_t id,
                     std::unique_ptr<Team>* team, Series series = Series::kCalls);

  const TeamServices& services_;
  TeamBackends& backends_;
  Registry<Team> live_;
  std::atomic<uint32_t> made_ = 0;  // teams whose first member is this process
  std::unique_ptr<Team> world_;
};

}  // namespace mobius::engine
