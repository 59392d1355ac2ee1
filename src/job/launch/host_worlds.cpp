// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/host_worlds.h"

#include <algorithm>

#include "base/status.h"

namespace mobius::launch {
namespace {

using job::ControlBlock;
using job::World;
using job::WorldState;

// The place of numbers that belong to no process on any host.
constexpr uint32_t kNowhere = ~uint32_t{0};

// A number above those that were there at first has no place yet where this is 0.
void fill_gap(ControlBlock& block, mob_rank_t end) {
  for (mob_rank_t i = block.header.job_numbers.load(std::memory_order_relaxed); i < end; ++i) {
    if (block.places()[i] == 0) block.places()[i] = kNowhere;
  }
}

}  // namespace

// Reserves what all hosts need, so that nothing fails afterwards.
mob_status_t HostWorlds::make_room(std::span<const HostSegment> segments, mob_rank_t first,
                                   mob_rank_t count, std::vector<Part>* parts) const {
  for (Part& part : *parts) {
    const HostSegment& segment = segments[static_cast<size_t>(part.host)];
    part.first = segment.block->header.numbers.load(std::memory_order_relaxed);
    const auto more = static_cast<mob_rank_t>(part.ranks.size());
    if (more > job::kMostLocalPeers - part.first) {
      return base::fail(MOB_ERR_RANGE,
                        "virtual host %d has had %d processes and can have %d in the job's life",
                        part.host, part.first, job::kMostLocalPeers);
    }
    if (const mob_status_t status = job::control_reserve(segment.descriptor, part.first, more)) {
      return status;
    }
  }
  for (const HostSegment& segment : segments) {
    const mob_rank_t known = segment.block->header.job_numbers.load(std::memory_order_relaxed);
    const mob_rank_t begin = std::min(known, first);
    if (const mob_status_t status =
            job::control_reserve_places(segment.descriptor, begin, first + count - begin)) {
      return status;
    }
  }
  return MOB_OK;
}

// Writes the part of a world on one host.
void HostWorlds::fill(ControlBlock& block, const World& world, mob_rank_t first, const Part& part) {
  World& here = block.world(part.first);
  here.size = static_cast<int32_t>(part.ranks.size());
  here.spawner = world.spawner;
  here.number = first;
  here.total = world.size;
  // The parent world may have no process here. The first one has, on each host.
  const auto parents = parts_.find(world.parent);
  bool is_here = world.parent == 0;
  if (parents != parts_.end()) {
    const auto found = std::ranges::find(parents->second, part.host, &Part::host);
    is_here = found != parents->second.end();
    if (is_here) here.parent = found->first;
  }
  here.is_connected.store(is_here ? 1 : 0, std::memory_order_relaxed);
  for (size_t i = 0; i < part.ranks.size(); ++i) {
    const mob_rank_t index = part.first + static_cast<mob_rank_t>(i);
    block.slot(index).world = part.first;
    block.ranks()[index] = part.ranks[i];
    places_[part.ranks[i]] = {part.host, index};
  }
  here.state.store(WorldState::kAsked, std::memory_order_release);
  block.header.numbers.store(part.first + here.size, std::memory_order_release);
}

mob_status_t HostWorlds::place(std::span<const HostSegment> segments, const World& world,
                               mob_rank_t first, std::span<const int32_t> hosts) {
  std::vector<Part> parts;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] < 0 || static_cast<size_t>(hosts[i]) >= segments.size()) {
      return base::fail(MOB_ERR_ARGUMENT, "there is no host %d", hosts[i]);
    }
    auto part = std::ranges::find(parts, hosts[i], &Part::host);
    if (part == parts.end()) part = parts.insert(parts.end(), {hosts[i], 0, {}});
    part->ranks.push_back(first + static_cast<mob_rank_t>(i));
  }
  const auto count = static_cast<mob_rank_t>(hosts.size());
  if (const mob_status_t status = make_room(segments, first, count, &parts)) return status;
  for (const Part& part : parts) {
    fill(*segments[static_cast<size_t>(part.host)].block, world, first, part);
  }
  for (const HostSegment& segment : segments) {
    ControlBlock& block = *segment.block;
    fill_gap(block, first);
    for (mob_rank_t rank = first; rank < first + count; ++rank) {
      block.places()[rank] = encode(places_[rank]);
    }
    std::atomic<int32_t>& numbers = block.header.job_numbers;
    const mob_rank_t known = numbers.load(std::memory_order_relaxed);
    // Release: who sees the number sees the place.
    numbers.store(std::max(known, first + count), std::memory_order_release);
  }
  parts_[first] = std::move(parts);
  return MOB_OK;
}

void HostWorlds::start(std::span<const HostSegment> segments, mob_rank_t first, mob_rank_t count) {
  for (const Part& part : parts_[first]) {
    World& here = segments[static_cast<size_t>(part.host)].block->world(part.first);
    here.size = static_cast<int32_t>(
        std::ranges::count_if(part.ranks, [&](mob_rank_t rank) { return rank < first + count; }));
    here.total = count;
    job::change_state(here, WorldState::kAsked,
                      here.size > 0 ? WorldState::kStarted : WorldState::kFailed);
  }
}

void HostWorlds::fail(std::span<const HostSegment> segments, mob_rank_t first) {
  const auto found = parts_.find(first);
  if (found == parts_.end()) return;
  for (const Part& part : found->second) {
    World& here = segments[static_cast<size_t>(part.host)].block->world(part.first);
    for (const WorldState from : {WorldState::kAsked, WorldState::kStarted, WorldState::kJoined}) {
      if (job::change_state(here, from, WorldState::kFailed)) break;
    }
  }
}

job::Place HostWorlds::place_of(mob_rank_t rank) const {
  const auto found = places_.find(rank);
  return found != places_.end() ? found->second : job::Place{-1, 0};
}

}  // namespace mobius::launch
