// SPDX-License-Identifier: BSD-3-Clause
// How a team of a job on several hosts starts other processes. The root asks for them; the members
// of the bridge on each host meet in memory that the first of them there makes, and those of
// different hosts by messages. Nothing but the request lies in memory that all hosts share.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/common/peers.h"
#include "engine/dynamic/bridges.h"
#include "engine/dynamic/join_watch.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"
#include "engine/team/team_messages.h"
#include "engine/team/together.h"
#include "job/worlds.h"

namespace mobius::engine {

using base::fail;
using job::World;
using job::WorldState;

namespace {

// Identifies a bridge's team on all hosts: no team that a program makes has this bit. The next two
// numbers are of messages in which processes say that they have joined, or come to their end.
uint64_t id_of(mob_rank_t first) {
  return static_cast<uint64_t>(first + 1) << 32 | uint64_t{0x80000000};
}
uint64_t joined_id(mob_rank_t first) { return id_of(first) + 1; }
uint64_t end_id(mob_rank_t first) { return id_of(first) + 2; }

// The same outcome at all members that live, where the team is on one host.
mob_status_t settle(const char* call, Team& team, mob_status_t status) {
  return team.spans_hosts() ? team.agree(status, call) : team.consensus().agree(call, status);
}

}  // namespace

mob_status_t Bridges::spawn_on_hosts(const char* call, Team& team, mob_rank_t root,
                                     mob_status_t mine, const Wish& wish, uint64_t* handle) {
  Registry<Bridge>::Place registered(live_);
  if (mine == MOB_OK) mine = registered.check(call);
  const bool is_root = team.rank() == root;
  Place place;
  std::unique_ptr<Bridge> bridge;
  mob_status_t status = together(call, team, [&] {
    const mob_status_t agreed = team.agree(mine, call);
    if (agreed != MOB_OK) return agreed;
    return start_and_meet_on_hosts(call, team, root, wish, &place, &bridge);
  });
  status = settle(call, team, status);
  const int segment = services_.peers.job().worlds_segment();
  if (status == MOB_OK) {
    if (is_root) job::free_request(segment, world(place.first));
    *handle = registered.fill(std::move(bridge));
    return MOB_OK;
  }
  const std::string text = mob_last_error();
  bridge.reset();
  // Any member may have to do it: the root may be dead.
  if (is_root || team.is_broken()) cancel(place);
  static_cast<void>(team.barrier());
  if (!team.is_broken()) {
    if (place.chunks != 0) teams_.release_area(place.memory, static_cast<mob_rank_t>(place.chunks));
    if (is_root && place.first != 0) job::free_request(segment, world(place.first));
  }
  return fail(status, "%s", text.c_str());
}

mob_status_t Bridges::start_and_meet_on_hosts(const char* call, Team& team, mob_rank_t root,
                                              const Wish& wish, Place* place,
                                              std::unique_ptr<Bridge>* bridge) {
  const bool is_root = team.rank() == root;
  if (is_root) {
    place->status =
        without_exceptions(call, [&] { return start_on_hosts(call, team, wish, place); });
  }
  std::vector<Place> places;
  if (const mob_status_t status = team.exchange(*place, &places)) return status;
  const mob_status_t own = place->status;
  *place = places[static_cast<size_t>(root)];
  if (place->status != MOB_OK) {
    if (is_root) return own;
    const std::string reason = place->first != 0 ? reason_of(place->first) : "";
    return reason.empty() ? fail(place->status, "%s: it failed at rank %d, the root", call,
                                 team.map().world_rank(root))
                          : fail(place->status, "%s: %s", call, reason.c_str());
  }
  std::vector<mob_rank_t> parents;
  for (mob_rank_t i = 0; i < team.size(); ++i) parents.push_back(team.map().world_rank(i));
  Ends ends;
  mob_status_t status = find_area(call, team, parents, place, &ends);
  if (status == MOB_OK && is_root) status = await_joined_on_hosts(call, *place);
  // How the members meet depends on the processors of the children, which must have joined.
  if ((status = team.agree(status, call))) return status;
  status = without_exceptions(call, [&] { return open_on_hosts(ends, *place, bridge); });
  // A member that fails does not meet the children, and the root cancels the spawn.
  if ((status = team.agree(status, call))) return status;
  status = (*bridge)->all->barrier();
  if (status != MOB_OK) return status;
  note_joined_here(**bridge);
  if (is_root && !change_state(world(place->first), WorldState::kStarted, WorldState::kJoined)) {
    return fail(MOB_ERR_PEER, "%s: %s", call, reason_of(place->first).c_str());
  }
  return MOB_OK;
}

mob_status_t Bridges::start_on_hosts(const char* call, Team& team, const Wish& wish, Place* place) {
  Peers& peers = services_.peers;
  job::WorldRequest wanted;
  wanted.least = wish.least;
  wanted.spawner = peers.rank();
  wanted.parent = peers.first();
  wanted.request = wish.request;
  wanted.hosts = wish.hosts;
  for (mob_rank_t i = 0; i < team.size(); ++i) wanted.parents.push_back(team.map().world_rank(i));
  const auto most =
      static_cast<mob_rank_t>(services_.settings.number(base::SettingId::kMaxProcesses));
  mob_rank_t first = 0;
  if (const mob_status_t status =
          job::write_request(call, *peers.job().directory(), wanted, most, &first)) {
    return status;
  }
  place->first = first;
  std::string reason;
  if (const mob_status_t status = peers.job().start_world(first, wish.request, &reason)) {
    return fail(status, "%s: %s", call, reason.c_str());
  }
  const mob_status_t status = await_started(call, first);
  place->count = world(first).size;
  return status;
}

// Finds where the members of a bridge on this host meet. Collective over one side of it, `side`:
// the processes that spawn, or those that were spawned. `place` gets the memory that this process
// has made, if it has.
mob_status_t Bridges::find_area(const char* call, Team& side,
                                const std::vector<mob_rank_t>& parents, Place* place, Ends* ends) {
  struct Area {
    mob_status_t status;
    uint64_t offset;
  };
  Peers& peers = services_.peers;
  ends->parents = static_cast<mob_rank_t>(parents.size());
  ends->members = parents;
  for (mob_rank_t i = 0; i < place->count; ++i) ends->members.push_back(place->first + i);
  std::vector<mob_rank_t> here;
  for (const mob_rank_t member : ends->members) {
    if (!peers.is_here(member)) continue;
    here.push_back(member);
    if (ends->child_here < 0 && member >= place->first) ends->child_here = member;
  }
  const mob_rank_t leader = here.front();
  Area area{MOB_OK, 0};
  place->memory = place->chunks = 0;
  if (leader == peers.rank()) {
    area.status = teams_.make_area(static_cast<mob_rank_t>(here.size()), &area.offset);
    if (area.status == MOB_OK) {
      place->memory = area.offset;
      place->chunks = here.size();
    }
  }
  std::vector<Area> areas;
  if (const mob_status_t status = side.exchange(area, &areas)) return status;
  const mob_rank_t told_by = side.map().rank_of(leader);
  if (told_by < 0) return await_area(call, leader, ends->child_here, &ends->area);
  if (area.status != MOB_OK) return area.status;
  area = areas[static_cast<size_t>(told_by)];
  if (area.status != MOB_OK) {
    return fail(MOB_ERR_PEER, "%s: it failed at rank %d with %s", call, leader,
                mob_status_name(area.status));
  }
  ends->area = area.offset;
  if (leader != peers.rank() || ends->child_here < 0 || ends->is_meeting) return MOB_OK;
  // Release pairs with the acquire in await_area().
  world_here(ends->child_here)
      .area.store(static_cast<uint32_t>(area.offset >> kChunkShift) + 1, std::memory_order_release);
  for (const mob_rank_t member : here) services_.waiter.ring(member);
  return MOB_OK;
}

// Makes this process' end of a bridge. All children have joined.
mob_status_t Bridges::open_on_hosts(const Ends& ends, const Place& place,
                                    std::unique_ptr<Bridge>* bridge) {
  TeamMap map = TeamMap::of(ends.members);
  const mob_rank_t own = map.rank_of(services_.peers.rank());
  auto made = std::make_unique<Bridge>();
  made->world = place.first;
  made->parents = ends.parents;
  made->children = place.count;
  made->is_child = own >= made->parents;
  made->child_here = ends.child_here;
  made->spans_hosts = true;
  const mob_status_t status =
      teams_.open(std::move(map), own, ends.area, id_of(place.first), &made->all);
  *bridge = std::move(made);
  return status;
}

// In a spawned process on a host where one of the processes that spawned it leads.
mob_status_t Bridges::await_area(const char* call, mob_rank_t leader, mob_rank_t child_here,
                                 uint64_t* offset) {
  class Watch final : public os::Watch {
   public:
    Watch(Bridges& bridges, const char* call, mob_rank_t leader, const World& here)
        : bridges_(bridges), call_(call), leader_(leader), here_(here) {}
    mob_status_t look() override {
      Peers& peers = bridges_.services_.peers;
      if (peers.is_dead(leader_)) return fail(MOB_ERR_PEER, "%s: rank %d died", call_, leader_);
      if (here_.state.load(std::memory_order_acquire) < WorldState::kFailed) return MOB_OK;
      return fail(MOB_ERR_PEER, "%s: the spawn of this process was given up", call_);
    }

   private:
    Bridges& bridges_;
    const char* call_;
    const mob_rank_t leader_;
    const World& here_;
  };
  const World& here = world_here(child_here);
  Watch watch(*this, call, leader, here);
  const mob_status_t status = services_.waiter.wait_until(
      [&] { return here.area.load(std::memory_order_acquire) != 0; }, &watch);
  if (status == MOB_OK) {
    *offset = uint64_t{here.area.load(std::memory_order_acquire) - 1} << kChunkShift;
  }
  return status;
}

// The root waits until the first of the new processes says that all have joined.
mob_status_t Bridges::await_joined_on_hosts(const char* call, const Place& place) {
  JoinWatch watch(*this, call, place.first, place.count, {});
  const World* const here =
      services_.peers.is_here(place.first) ? &world_here(place.first) : nullptr;
  TeamMessage message;
  return services_.waiter.wait_until(
      [&] {
        return here != nullptr
                   ? here->have_joined.load(std::memory_order_acquire) != 0
                   : services_.messages.take(joined_id(place.first), place.first, &message);
      },
      &watch);
}

// Called by the first of the new processes. A message to a process of this host would need a ring,
// which that one would keep.
mob_status_t Bridges::tell_joined(mob_rank_t spawner) {
  const mob_rank_t first = services_.peers.first();
  if (!services_.peers.is_here(spawner)) {
    return services_.messages.send(joined_id(first), spawner, TeamMessage::Kind::kWhole, nullptr,
                                   0);
  }
  world_here(first).have_joined.store(1, std::memory_order_release);
  services_.waiter.ring(spawner);
  return MOB_OK;
}

mob_status_t Bridges::open_parent_on_hosts() {
  constexpr const char* kCall = "mob_init";
  Peers& peers = services_.peers;
  const World& own = world(peers.first());
  std::vector<mob_rank_t> parents;
  std::vector<int32_t> hosts;
  const bool is_read = job::read_members(peers.job().worlds_segment(), own, &parents, &hosts);
  Team& side = teams_.world();
  const mob_status_t mine =
      is_read ? MOB_OK : fail(MOB_ERR_SYSTEM, "mob_init: the request of the spawn cannot be read");
  if (const mob_status_t status = side.agree(mine, kCall)) return status;
  Place place;
  place.first = peers.first();
  place.count = peers.size();
  std::unique_ptr<Bridge> bridge;
  Ends ends;
  mob_status_t status = find_area(kCall, side, parents, &place, &ends);
  if (status == MOB_OK) status = open_on_hosts(ends, place, &bridge);
  if ((status = side.agree(status, kCall))) return status;
  if (peers.rank() == peers.first()) {
    if ((status = tell_joined(own.spawner))) return status;
  }
  if ((status = bridge->all->barrier())) return status;
  note_joined_here(*bridge);
  parent_ = live_.add(std::move(bridge));
  return parent_ != 0 ? MOB_OK : fail(MOB_ERR_MEMORY, "no memory for the bridge");
}

// The record of the part of a world on this host, one of whose processes is given.
World& Bridges::world_here(mob_rank_t child) const {
  job::ControlBlock& control = services_.peers.host().control();
  return control.world(control.slot(services_.peers.host_index(child)).world);
}

void Bridges::note_joined_here(const Bridge& bridge) {
  if (bridge.child_here < 0) return;
  job::change_state(world_here(bridge.child_here), WorldState::kStarted, WorldState::kJoined);
}

mob_status_t Bridges::disconnect_on_hosts(const char* call, uint64_t handle) {
  Bridge& bridge = *live_.find(handle);
  const mob_status_t completed = services_.completion.complete_all(call);
  const mob_status_t met = bridge.all->barrier();
  world(bridge.world).is_connected.store(0, std::memory_order_release);
  if (bridge.child_here >= 0) {
    world_here(bridge.child_here).is_connected.store(0, std::memory_order_release);
  }
  const std::unique_ptr<Bridge> ended = live_.remove(handle);
  if (handle == parent_) parent_ = 0;
  services_.messages.forget(end_id(ended->world));
  Team& all = *ended->all;
  // The last member has seen the others' last use of the memory.
  if (all.depart()) teams_.release_area(all.area_offset(), all.local_team().size());
  return met != MOB_OK ? met : completed;
}

void Bridges::announce_end_on_hosts(const Bridge& bridge) {
  for (mob_rank_t i = 0; i < bridge.all->size(); ++i) {
    const mob_rank_t rank = bridge.all->map().world_rank(i);
    if (rank == services_.peers.rank() || services_.peers.has_gone(rank)) continue;
    static_cast<void>(
        services_.messages.send(end_id(bridge.world), rank, TeamMessage::Kind::kWhole, nullptr, 0));
  }
}

bool Bridges::has_ended_on_hosts(const Bridge& bridge, mob_rank_t rank) {
  return rank == services_.peers.rank() ||
         services_.messages.has_come(end_id(bridge.world), rank) || services_.peers.has_gone(rank);
}

}  // namespace mobius::engine
