// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/teams.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/common/peers.h"
#include "engine/segment/segment.h"
#include "engine/team/team_messages.h"

namespace mobius::engine {

using base::fail;

namespace {

// FNV-1a of the ranks and their order.
uint64_t digest_of(std::span<const mob_rank_t> ranks) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const mob_rank_t rank : ranks) {
    digest = (digest ^ static_cast<uint32_t>(rank)) * 0x100000001b3;
  }
  return digest;
}

}  // namespace

bool Teams::find_local_members(const TeamMap& map, std::vector<mob_rank_t>* local_members) const {
  for (mob_rank_t member = 0; member < map.size(); ++member) {
    const mob_rank_t rank = map.world_rank(member);
    if (services_.peers.is_here(rank)) local_members->push_back(rank);
  }
  return local_members->size() == static_cast<size_t>(map.size());
}

mob_status_t Teams::make_area(mob_rank_t size, uint64_t* offset) {
  const uint64_t chunks = chunks_of(Team::area_bytes(size));
  uint64_t first = 0;
  if (const mob_status_t status = services_.segment.chunks().claim(chunks, &first)) return status;
  *offset = first << kChunkShift;
  const mob_status_t status = services_.segment.reserve_memory(*offset, Team::area_bytes(size));
  if (status != MOB_OK) services_.segment.chunks().release(first, chunks);
  return status;
}

// The area is that of the members on this host.
mob_status_t Teams::adopt(TeamMap map, mob_rank_t team_rank, uint64_t area_offset, uint64_t id,
                          std::unique_ptr<Team>* team, Series series) {
  std::vector<mob_rank_t> local_members;
  const bool all_here = find_local_members(map, &local_members);
  const uint64_t chunks =
      chunks_of(Team::area_bytes(static_cast<mob_rank_t>(local_members.size())));
  if (const mob_status_t status = services_.segment.window().allow(area_offset, chunks))
    return status;
  void* const area = services_.segment.local_address(area_offset);
  if (!all_here) {
    TeamMap here = TeamMap::of(local_members);
    const mob_rank_t place = here.rank_of(services_.peers.rank());
    auto local =
        std::make_unique<Team>(services_, std::move(here), place, area, area_offset, series);
    *team = std::make_unique<Team>(services_, backends_, std::move(map), team_rank, id,
                                   std::move(local));
    return MOB_OK;
  }
  *team = std::make_unique<Team>(services_, std::move(map), team_rank, area, area_offset, series);
  return MOB_OK;
}

void Teams::release_area(uint64_t offset, mob_rank_t size) {
  const uint64_t chunks = chunks_of(Team::area_bytes(size));
  services_.segment.release_memory(offset, chunks << kChunkShift);
  services_.segment.chunks().release(offset >> kChunkShift, chunks);
}

mob_status_t Teams::open_world(mob_status_t status) {
  job::HostGroup& host = services_.peers.host();
  uint64_t offset = 0;
  std::vector<uint64_t> offsets;
  const auto make = [&] {
    return host.index() == host.first() ? make_area(host.size(), &offset) : MOB_OK;
  };
  if (status == MOB_OK) status = without_exceptions("mob_init", make);
  if ((status = host.agree(status, "mob_init"))) return status;
  if ((status = host.exchange(offset, &offsets))) return status;
  status = without_exceptions("mob_init", [&] {
    return adopt(TeamMap::strided(services_.peers.first(), 1, services_.peers.size()),
                 services_.peers.rank() - services_.peers.first(), offsets[0], 0, &world_);
  });
  return host.agree(status, "mob_init");
}

mob_status_t Teams::open_end(std::unique_ptr<Team>* team) {
  return adopt(TeamMap::strided(services_.peers.first(), 1, services_.peers.size()),
               services_.peers.rank() - services_.peers.first(), world_->area_offset(), kEndOfJob,
               team, Series::kEnd);
}

// The arguments of one member in a call that makes teams. A member uses the values of others only
// once all are known to make the same call.
struct Teams::Choice {
  static constexpr uint64_t kSplit = 0x4d6f6254'73706c69;
  static constexpr uint64_t kSelect = 0x4d6f6254'73656c65;

  uint64_t what;
  uint64_t list;  // digest of the list
  int colour;
  int key;
  mob_rank_t world_rank;
  mob_rank_t parent_rank;
  mob_status_t status;
};

// Exchanges the choices. Fails everywhere unless all members make the same call.
mob_status_t Teams::hear(const char* call, Team& parent, const Choice& mine,
                         std::vector<Choice>* all) {
  if (const mob_status_t status = parent.exchange(mine, all)) return status;
  const auto world_rank = [&](size_t member) {
    return parent.map().world_rank(static_cast<mob_rank_t>(member));
  };
  for (size_t i = 0; i < all->size(); ++i) {
    const Choice& choice = (*all)[i];
    if (choice.what != Choice::kSplit && choice.what != Choice::kSelect) {
      return fail(MOB_ERR_ARGUMENT, "%s: rank %d is in another collective call of the team", call,
                  world_rank(i));
    }
  }
  if (mine.status != MOB_OK) return mine.status;
  for (size_t i = 0; i < all->size(); ++i) {
    const Choice& choice = (*all)[i];
    if (choice.status != MOB_OK) {
      return fail(MOB_ERR_PEER, "%s: it failed at rank %d with %s", call, world_rank(i),
                  mob_status_name(choice.status));
    }
  }
  for (size_t i = 1; i < all->size(); ++i) {
    if ((*all)[i].what == all->front().what) continue;
    return fail(
        MOB_ERR_ARGUMENT,
        "%s: ranks %d and %d split it by colour and by ranks; all members of a team make the "
        "same calls in the same order",
        call, world_rank(0), world_rank(i));
  }
  return MOB_OK;
}

mob_status_t Teams::split(const char* call, Team& parent, mob_status_t mine, int colour, int key,
                          uint64_t* handle) {
  std::vector<Choice> choices;
  const mob_rank_t self = services_.peers.rank();
  if (const mob_status_t status = hear(
          call, parent, {Choice::kSplit, 0, colour, key, self, parent.rank(), mine}, &choices)) {
    return status;
  }
  std::erase_if(choices, [&](const Choice& choice) { return choice.colour != colour; });
  std::ranges::sort(choices, {},
                    [](const Choice& choice) { return std::pair(choice.key, choice.parent_rank); });
  std::vector<mob_rank_t> members(choices.size());
  std::ranges::transform(choices, members.begin(), &Choice::world_rank);
  if (colour < 0) return make(parent, nullptr, -1, handle);
  const TeamMap map = TeamMap::of(members);
  return make(parent, &map, map.rank_of(self), handle);
}

mob_status_t Teams::select(const char* call, Team& parent, mob_status_t mine,
                           std::span<const mob_rank_t> ranks, uint64_t* handle) {
  std::vector<Choice> choices;
  if (const mob_status_t status = hear(
          call, parent,
          {Choice::kSelect, digest_of(ranks), 0, 0, services_.peers.rank(), parent.rank(), mine},
          &choices)) {
    return status;
  }
  // One call may make several teams; the members of each pass the same list.
  mob_status_t status = MOB_OK;
  const auto passed_by = [&](mob_rank_t rank) { return choices[static_cast<size_t>(rank)].list; };
  if (std::ranges::find(ranks, parent.rank()) != ranks.end()) {
    const auto differs = std::ranges::find_if(
        ranks, [&](mob_rank_t rank) { return passed_by(rank) != passed_by(parent.rank()); });
    if (differs != ranks.end()) {
      status = fail(MOB_ERR_ARGUMENT,
                    "%s: ranks %d and %d pass different ranks; all that are listed pass the same, "
                    "in the same order",
                    call, services_.peers.rank(), parent.map().world_rank(*differs));
    }
  }
  if ((status = parent.agree(status, call))) return status;
  std::vector<mob_rank_t> members(ranks.size());
  std::ranges::transform(ranks, members.begin(),
                         [&](mob_rank_t rank) { return parent.map().world_rank(rank); });
  const TeamMap map = TeamMap::of(members);
  const mob_rank_t rank = map.rank_of(services_.peers.rank());
  return make(parent, rank >= 0 ? &map : nullptr, rank, handle);
}

// The part that split() and select() share. On each host the first member of each new team makes
// the area of the members there, and tells all through the parent.
mob_status_t Teams::make(Team& parent, const TeamMap* map, mob_rank_t rank, uint64_t* handle) {
  struct Area {
    mob_status_t status;
    uint64_t offset;
    uint64_t id;  // of the new team whose first member is this process
  };
  constexpr const char* kWhat = "making a team";
  Registry<Team>::Place place(live_);
  Area area{MOB_OK, 0, 0};
  std::vector<mob_rank_t> local_members;
  if (map != nullptr) find_local_members(*map, &local_members);
  const bool leads = !local_members.empty() && local_members.front() == services_.peers.rank();
  const auto members = static_cast<mob_rank_t>(local_members.size());
  if (leads) area.status = make_area(members, &area.offset);
  if (rank == 0) area.id = static_cast<uint64_t>(services_.peers.rank() + 1) << 32 | ++made_;
  std::vector<Area> areas;
  mob_status_t status = parent.exchange(area, &areas);
  if (status != MOB_OK) return status;
  std::unique_ptr<Team> team;
  status = area.status;
  if (map != nullptr) {
    const auto told_by = [&](mob_rank_t world_rank) {
      return areas[static_cast<size_t>(parent.map().rank_of(world_rank))];
    };
    const Area own = told_by(local_members.front());
    const uint64_t id = told_by(map->world_rank(0)).id;
    if (own.status == MOB_OK) status = adopt(*map, rank, own.offset, id, &team);
    if (status == MOB_OK) status = place.check(kWhat);
  }
  // Fails everywhere if it fails anywhere: a team that some members lack would hang the others.
  if ((status = parent.agree(status, kWhat))) {
    if (leads && area.status == MOB_OK && !parent.is_broken()) {
      release_area(area.offset, members);
    }
    return status;
  }
  *handle = team != nullptr ? place.fill(std::move(team)) : 0;
  return MOB_OK;
}

mob_status_t Teams::gather(const char* call, std::span<const mob_rank_t> ranks,
                           mob_exchange_t exchange, void* argument, uint64_t* handle) {
  struct Area {
    mob_status_t status;
    uint64_t offset;
    uint64_t id;
  };
  std::vector<Area> areas(ranks.size());
  std::vector<mob_status_t> outcomes(ranks.size());
  const auto failed = [&] {
    return fail(MOB_ERR_SYSTEM, "%s: the caller's exchange failed", call);
  };
  const auto peer_failed = [&](mob_rank_t rank, mob_status_t status) {
    return fail(MOB_ERR_PEER, "%s: it failed at rank %d with %s", call, rank,
                mob_status_name(status));
  };
  const TeamMap map = TeamMap::of(ranks);
  const mob_rank_t rank = map.rank_of(services_.peers.rank());
  std::vector<mob_rank_t> local_members;
  find_local_members(map, &local_members);
  const bool leads = local_members.front() == services_.peers.rank();
  const auto members = static_cast<mob_rank_t>(local_members.size());
  Registry<Team>::Place place(live_);
  Area area{MOB_OK, 0, 0};
  if (leads) area.status = make_area(members, &area.offset);
  if (rank == 0) area.id = static_cast<uint64_t>(services_.peers.rank() + 1) << 32 | ++made_;
  const auto give_up = [&](mob_status_t status) {
    if (leads && area.status == MOB_OK) release_area(area.offset, members);
    return status;
  };
  if (exchange(&area, sizeof area, areas.data(), argument) != 0) return give_up(failed());
  const Area& own = areas[static_cast<size_t>(map.rank_of(local_members.front()))];
  mob_status_t status = area.status;
  if (status == MOB_OK && own.status != MOB_OK) {
    status = peer_failed(local_members.front(), own.status);
  }
  std::unique_ptr<Team> team;
  if (status == MOB_OK) status = adopt(map, rank, own.offset, areas[0].id, &team);
  if (status == MOB_OK) status = place.check(call);
  // Fails everywhere if it fails anywhere: a team that some members lack would hang the others.
  if (exchange(&status, sizeof status, outcomes.data(), argument) != 0) return give_up(failed());
  if (status != MOB_OK) return give_up(status);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] != MOB_OK) return give_up(peer_failed(ranks[i], outcomes[i]));
  }
  *handle = place.fill(std::move(team));
  return MOB_OK;
}

mob_status_t Teams::shrink(const char* call, Team& team, mob_status_t mine, uint64_t* handle) {
  Registry<Team>::Place place(live_);
  if (mine == MOB_OK) mine = place.check(call);
  const std::string own_error = mine != MOB_OK ? mob_last_error() : "";
  Consensus& consensus = team.consensus();
  Consensus::Proposal proposal;
  mob_rank_t size = 0;
  if (consensus.begin(mine == MOB_OK ? 1 : 0)) {
    size = consensus.survivors();
    if (consensus.all_brought_flags()) proposal.status = make_area(size, &proposal.offset);
    consensus.propose(proposal);
  }
  Consensus::Decision living;
  mob_status_t status = consensus.end(call, &living);
  const bool has_area = size != 0 && consensus.all_brought_flags() && proposal.status == MOB_OK;
  if (has_area && !living.is_mine) release_area(proposal.offset, size);
  if (mine != MOB_OK) return fail(mine, "%s", own_error.c_str());
  if (status != MOB_OK) return status;
  if (living.against >= 0) {
    return fail(MOB_ERR_PEER, "%s failed here because it failed at rank %d", call,
                team.map().world_rank(living.against));
  }
  if (living.proposal.status != MOB_OK) {
    return fail(living.proposal.status, "%s: there is no memory for the new team", call);
  }
  std::unique_ptr<Team> made;
  status = without_exceptions(call, [&] {
    std::vector<mob_rank_t> members;
    for (mob_rank_t i = 0; i < team.size(); ++i) {
      if (living.survivors.has(i)) members.push_back(team.map().world_rank(i));
    }
    TeamMap map = TeamMap::of(members);
    size = map.size();
    const mob_rank_t rank = map.rank_of(services_.peers.rank());
    return adopt(std::move(map), rank, living.proposal.offset, 0, &made);
  });
  // A team that some members lack would hang the others.
  if ((status = consensus.agree(call, status))) {
    made.reset();
    if (living.is_mine) release_area(living.proposal.offset, size);
    return status;
  }
  *handle = place.fill(std::move(made));
  return MOB_OK;
}

mob_status_t Teams::make_own(std::unique_ptr<Team>* team) {
  uint64_t offset = 0;
  if (const mob_status_t status = make_area(1, &offset)) return status;
  return adopt(TeamMap::strided(services_.peers.rank(), 1, 1), 0, offset, 0, team);
}

void Teams::end_own(Team& team) {
  if (team.depart()) release_area(team.area_offset(), 1);
}

mob_status_t Teams::release(uint64_t handle) {
  const std::unique_ptr<Team> team = live_.remove(handle);
  const mob_status_t status = team->barrier();
  // The last member to leave frees the area: until then a member may still read it in the barrier.
  if (team->depart()) release_area(team->area_offset(), team->local_team().size());
  return status;
}

void Teams::leave_world() {
  if (world_->depart()) release_area(world_->area_offset(), world_->local_team().size());
}

void Teams::close() { world_.reset(); }

}  // namespace mobius::engine
