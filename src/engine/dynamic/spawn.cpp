// SPDX-License-Identifier: BSD-3-Clause
// How a team starts other processes. One member, the root, does so; the others wait for the
// outcome, which is the same in all of them.

#include <algorithm>
#include <cstdio>
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
#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"
#include "engine/team/together.h"
#include "job/worlds.h"
#include "os/sync/futex.h"

namespace mobius::engine {
namespace {

using base::fail;
using job::change_state;
using job::World;
using job::WorldState;

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

mob_status_t Bridges::spawn(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                            const Wish& wish, uint64_t* handle) {
  if (services_.peers.job().hosts() > 1) {
    return spawn_on_hosts(call, team, root, mine, wish, handle);
  }
  return grow(
      call, team, root, mine,
      [&](Place* place, std::vector<os::UnixSocket>*) { return start(call, team, wish, place); },
      handle);
}

// What a spawn and an accept have in common: the new processes come, and all meet.
mob_status_t Bridges::grow(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                           const Begin& begin, uint64_t* handle, bool* is_far) {
  Registry<Bridge>::Place registered(live_);
  if (mine == MOB_OK) mine = registered.check(call);
  const bool is_root = team.rank() == root;
  Place place;
  std::vector<os::UnixSocket> callers;
  std::unique_ptr<Bridge> bridge;
  if (is_root) free_abandoned();
  mob_status_t status = together(call, team, [&] {
    const mob_status_t agreed = team.agree(mine, call);
    return agreed != MOB_OK ? agreed
                            : begin_and_meet(call, team, root, begin, &place, &callers, &bridge);
  });
  // Above, a member that dies may fail the call for some. From here on the outcome is the same at
  // all that live, so that they go on alike.
  status = team.spans_hosts() ? team.agree(status, call) : team.consensus().agree(call, status);
  if (status == MOB_OK && place.is_far) {
    *is_far = true;
    return MOB_OK;
  }
  const bool is_foreign =
      place.first != 0 && world(place.first).is_foreign.load(std::memory_order_relaxed) != 0;
  if (status != MOB_OK) {
    const std::string text = mob_last_error();
    bridge.reset();
    // Any member may have to do it: the root may be dead.
    if (is_root || team.is_broken()) cancel(place);
    static_cast<void>(team.barrier());
    if (is_root && place.chunks != 0 && !team.is_broken()) {
      if (is_foreign) {
        abandon(place, std::move(callers));
      } else {
        free_memory(place.memory, place.chunks);
      }
    }
    return fail(status, "%s", text.c_str());
  }
  if (is_root && !is_foreign) services_.peers.job().settle_world(place.first);
  services_.peers.job().settle_waiting(services_.settings);
  *handle = registered.fill(std::move(bridge));
  return MOB_OK;
}

// The steps of grow() after all members have been found ready.
mob_status_t Bridges::begin_and_meet(const char* call, Team& team, mob_rank_t root,
                                     const Begin& begin, Place* place,
                                     std::vector<os::UnixSocket>* callers,
                                     std::unique_ptr<Bridge>* bridge) {
  const bool is_root = team.rank() == root;
  if (is_root) place->status = begin(place, callers);
  std::vector<Place> places;
  mob_status_t status = team.exchange(*place, &places);
  const mob_rank_t root_number = team.map().world_rank(root);
  // The reason is the root's own error, or stands in the record.
  const auto failed = [&](mob_status_t why) {
    const std::string reason = place->first != 0 ? reason_of(place->first) : "";
    return reason.empty() ? fail(why, "%s: it failed at rank %d, the root", call, root_number)
                          : fail(why, "%s: %s", call, reason.c_str());
  };
  if (status == MOB_OK && !is_root) {
    *place = places[static_cast<size_t>(root)];
    if (place->status != MOB_OK) static_cast<void>(failed(place->status));
  }
  if (status == MOB_OK) status = place->status;
  if (status == MOB_OK && place->is_far) return MOB_OK;
  BridgeHeader* header = nullptr;
  if (status == MOB_OK) status = open_memory(place->first, place->bridge, &header);
  if (status == MOB_OK) status = await_joined(call, *header, place->first, place->count, *callers);
  if (status == MOB_OK) {
    status = without_exceptions(call, [&] {
      *bridge = make_bridge(*header, place->first, place->count);
      return MOB_OK;
    });
  }
  // A member that fails does not meet the children, and the root cancels the spawn.
  if ((status = team.agree(status, call))) return status;
  World& record = world(place->first);
  const bool is_foreign = record.is_foreign.load(std::memory_order_relaxed) != 0;
  // Processes that nobody can end wait for this before they meet the team (await_opened()).
  if (is_foreign && is_root) change_state(record, WorldState::kStarted, WorldState::kJoined);
  status = (*bridge)->all->barrier();
  if (status == MOB_OK && is_root && !is_foreign &&
      !change_state(record, WorldState::kStarted, WorldState::kJoined)) {
    status = failed(MOB_ERR_PEER);
  }
  return status;
}

mob_status_t Bridges::start(const char* call, Team& team, const Wish& wish, Place* place) {
  return without_exceptions(call, [&] {
    mob_rank_t first = 0;
    mob_status_t status = allot(call, wish.count, &first);
    if (status != MOB_OK) return status;
    place->first = first;
    if ((status = make_memory(call, team, wish, place))) {
      place->first = 0;
      return status;
    }
    if ((status = ask(call, wish, *place))) return status;
    World& record = world(first);
    place->count = record.size;
    return MOB_OK;
  });
}

// Takes numbers for the new processes and reserves what those need in the segment.
mob_status_t Bridges::allot(const char* call, mob_rank_t count, mob_rank_t* first) {
  job::ControlBlock& control = services_.peers.host().control();
  const auto most =
      static_cast<mob_rank_t>(services_.settings.number(base::SettingId::kMaxProcesses));
  const int segment = services_.peers.host().segment();
  // Before the number is valid: others look at all slots below it.
  const auto reserve = [&](mob_rank_t begin) {
    mob_status_t status = job::control_reserve(segment, begin, count);
    for (mob_rank_t i = begin; status == MOB_OK && i < begin + count; ++i) {
      status = SegmentLayout::reserve(segment, i);
    }
    return status;
  };
  if (const mob_status_t status =
          job::take_numbers(call, control.header.numbers, count, most, reserve, first)) {
    return status;
  }
  for (mob_rank_t i = *first; i < *first + count; ++i) control.slot(i).world = *first;
  return MOB_OK;
}

mob_status_t Bridges::make_memory(const char* call, Team& team, const Wish& wish, Place* place) {
  Segment& segment = services_.segment;
  const std::string request = wish.request.encoded();
  const mob_rank_t parents = team.size();
  const auto members = static_cast<size_t>(parents) + static_cast<size_t>(wish.count);
  const size_t header_at = round_up(sizeof(job::SpawnMemory) + request.size(), kLine);
  const size_t ends =
      round_up(sizeof(BridgeHeader) + static_cast<size_t>(parents) * sizeof(mob_rank_t), kLine);
  const size_t area_at = round_up(header_at + ends + members * sizeof(uint32_t), kPage);
  const size_t bytes = area_at + Team::area_bytes(static_cast<mob_rank_t>(members));
  const uint64_t chunks = chunks_of(bytes);
  uint64_t first_chunk = 0;
  if (const mob_status_t status = segment.chunks().claim(chunks, &first_chunk)) return status;
  const uint64_t offset = first_chunk << kChunkShift;
  mob_status_t status = segment.reserve_memory(offset, bytes);
  if (status == MOB_OK) status = segment.window().allow(offset, chunks);
  if (status != MOB_OK) {
    segment.chunks().release(first_chunk, chunks);
    return fail(status, "%s: %s", call, std::string(mob_last_error()).c_str());
  }
  auto* const memory = static_cast<char*>(segment.local_address(offset));
  auto& spawn_memory = *reinterpret_cast<job::SpawnMemory*>(memory);
  spawn_memory.request_bytes = request.size();
  spawn_memory.reason[0] = '\0';
  std::ranges::copy(request, memory + sizeof spawn_memory);
  auto& header = *reinterpret_cast<BridgeHeader*>(memory + header_at);
  header.chunks = chunks;
  header.memory = offset;
  header.area = offset + area_at;
  header.ends = ends;
  header.parents = parents;
  for (mob_rank_t i = 0; i < parents; ++i) header.numbers()[i] = team.map().world_rank(i);
  place->memory = offset;
  place->chunks = chunks;
  place->bridge = offset + header_at;
  return MOB_OK;
}

// Has the processes started. Returns when they have been, or could not be.
mob_status_t Bridges::ask(const char* call, const Wish& wish, const Place& place) {
  World& record = world(place.first);
  record.size = wish.count;
  record.least = wish.least;
  record.spawner = services_.peers.rank();
  record.parent = services_.peers.first();
  record.memory = job::kWindowOffset + place.memory;
  record.bridge = place.bridge;
  record.is_connected.store(1, std::memory_order_relaxed);
  record.state.store(WorldState::kAsked, std::memory_order_release);
  std::string reason;
  if (const mob_status_t status =
          services_.peers.job().start_world(place.first, wish.request, &reason)) {
    return fail(status, "%s: %s", call, reason.c_str());
  }
  return await_started(call, place.first);
}

mob_status_t Bridges::await_started(const char* call, mob_rank_t first) {
  constexpr uint64_t kLookNs = 100'000'000;
  const World& record = world(first);
  WorldState state = record.state.load(std::memory_order_acquire);
  while (state == WorldState::kAsked) {
    if (!services_.waiter.poll()) {
      os::futex_wait(&record.state, static_cast<uint32_t>(state), kLookNs);
    }
    state = record.state.load(std::memory_order_acquire);
  }
  if (state == WorldState::kStarted) return MOB_OK;
  return fail(record.failure, "%s: %s", call, reason_of(first).c_str());
}

// Waits until all children have joined. Fails when one of them cannot any more.
mob_status_t Bridges::await_joined(const char* call, BridgeHeader& header, mob_rank_t first,
                                   mob_rank_t count, std::span<const os::UnixSocket> callers) {
  JoinWatch watch(*this, call, first, count, callers);
  const mob_status_t status = services_.waiter.wait_until(
      [&] { return header.joined.load(std::memory_order_acquire) == count; }, &watch);
  World& record = world(first);
  if (status != MOB_OK && record.is_foreign.load(std::memory_order_relaxed) != 0) {
    // The other members, and the processes that have joined, may not see the reason.
    job::write_reason(services_.peers.host().segment(), record, mob_last_error());
    change_state(record, WorldState::kStarted, WorldState::kFailed);
  }
  return status;
}

// Ends the children. Returns when they have ended.
void Bridges::cancel(const Place& place) {
  if (place.first == 0) return;
  World& record = world(place.first);
  record.is_connected.store(0, std::memory_order_release);
  if (record.is_foreign.load(std::memory_order_relaxed) != 0) {
    job::write_reason(services_.peers.host().segment(), record, mob_last_error());
    if (!change_state(record, WorldState::kStarted, WorldState::kFailed)) {
      change_state(record, WorldState::kJoined, WorldState::kFailed);
    }
    return;
  }
  // The launcher has not heard of it.
  if (change_state(record, WorldState::kAsked, WorldState::kEnded)) return;
  if (!change_state(record, WorldState::kStarted, WorldState::kFailed)) {
    change_state(record, WorldState::kJoined, WorldState::kFailed);
  }
  static_cast<void>(services_.peers.job().end_world(place.first));
}

std::string Bridges::reason_of(mob_rank_t first) const {
  const job::World& record = world(first);
  const WorldState state = record.state.load(std::memory_order_acquire);
  if (state != WorldState::kFailed && state != WorldState::kEnded) return {};
  if (services_.peers.job().hosts() > 1) {
    return job::read_reason(services_.peers.job().worlds_segment(), record);
  }
  const uint64_t offset = record.memory - job::kWindowOffset;
  if (services_.segment.window().allow(offset, 1) != MOB_OK) return {};
  const auto& memory =
      *static_cast<const job::SpawnMemory*>(services_.segment.local_address(offset));
  return std::string(memory.reason, strnlen(memory.reason, sizeof memory.reason));
}

}  // namespace mobius::engine
