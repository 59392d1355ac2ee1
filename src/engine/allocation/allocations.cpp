// SPDX-License-Identifier: BSD-3-Clause
#include "engine/allocation/allocations.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/allocation/complete_all.h"
#include "engine/common/peers.h"
#include "engine/request/rkeys.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/segment.h"
#include "engine/segment/window/region.h"
#include "engine/team/teams.h"
#include "os/memory/memory_limits.h"

namespace mobius::engine {
namespace {

using base::fail;

constexpr uint64_t kNoName = UINT64_MAX;  // names no allocation

const char* text_of(Allocations::Fault fault) {
  switch (fault) {
    case Allocations::Fault::kNullResult:
      return "passed null for the result";
    case Allocations::Fault::kAlignment:
      return "passed an alignment that is not a power of two up to 2 MiB";
    case Allocations::Fault::kNoPlace:
      return "has no room for one more object of its kind";
    case Allocations::Fault::kNone:
      break;
  }
  return "";
}

mob_status_t status_of(Allocations::Fault own) {
  if (own == Allocations::Fault::kNone) return MOB_ERR_PEER;
  return own == Allocations::Fault::kNoPlace ? MOB_ERR_MEMORY : MOB_ERR_ARGUMENT;
}

}  // namespace

struct Allocations::Request {
  size_t bytes;
  size_t available;  // of the host; one process of each host asks the kernel, for all
  Fault fault;
};

// Every member knows the requests of all members and the free memory of every host. So all come to
// the same result, also between hosts, unless the hosts' windows differ.
mob_status_t Allocations::check(const char* call, const Team& team,
                                const std::vector<Request>& requests, Fault fault,
                                size_t* largest) const {
  struct HostSum {
    size_t total = 0;
    size_t available = 0;
  };
  std::map<mob_rank_t, HostSum> hosts;
  const size_t window = services_.segment.window().bytes();
  *largest = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const mob_rank_t rank = team.map().world_rank(static_cast<mob_rank_t>(i));
    if (requests[i].fault != Fault::kNone) {
      return fail(status_of(fault), "%s: rank %d %s", call, rank, text_of(requests[i].fault));
    }
    HostSum& host = hosts[services_.peers.job().place_of(rank).host];
    if (requests[i].available != 0) host.available = requests[i].available;
    if (requests[i].bytes > window ||
        __builtin_add_overflow(host.total, requests[i].bytes, &host.total)) {
      return fail(MOB_ERR_RANGE,
                  "%s: %zu bytes at rank %d are more than the window of %zu bytes; see "
                  "MOBIUS_WINDOW_BYTES",
                  call, requests[i].bytes, rank, window);
    }
    *largest = std::max(*largest, requests[i].bytes);
  }
  const mob_rank_t own = services_.peers.job().place_of(services_.peers.rank()).host;
  for (const auto& [place, host] : hosts) {
    if (host.total <= host.available) continue;
    const std::string why = place == own ? os::available_memory().limited_by : "";
    return fail(MOB_ERR_MEMORY,
                "%s: the processes of %s host ask for %zu bytes together, but only "
                "%zu bytes of memory are available%s%s",
                call, place == own ? "this" : "another", host.total, host.available,
                why.empty() ? "" : " ", why.c_str());
  }
  return MOB_OK;
}

mob_status_t Allocations::allocate(const char* call, Team& team, size_t bytes, size_t room,
                                   Fault fault, uint64_t* handle) {
  Team& local_team = team.local_team();
  const bool leader = local_team.rank() == 0;
  Registry<Allocation>::Place place(live_);
  if (fault == Fault::kNone && !place) fault = Fault::kNoPlace;
  std::vector<Request> requests;
  mob_status_t status =
      team.exchange(Request{bytes, leader ? os::available_memory().bytes : 0, fault}, &requests);
  if (status != MOB_OK) return status;
  auto allocation = std::make_unique<Allocation>();
  allocation->team = &team;
  size_t largest = 0;
  status = check(call, team, requests, fault, &largest);
  // On one host all members find the same.
  if (status != MOB_OK && !team.spans_hosts()) return status;
  const uint64_t stride = chunks_of(std::max(largest, room)) << kChunkShift;
  const uint64_t chunks = (stride >> kChunkShift) * static_cast<uint64_t>(local_team.size());
  allocation->stride = stride;
  const bool checked = status == MOB_OK;
  bool claimed = false;
  if (checked) {
    status = claim(call, local_team, stride, allocation.get());
    claimed = status == MOB_OK;
  }
  if (status != MOB_OK && !team.spans_hosts()) return status;

  if (status == MOB_OK) status = make_own_region(*allocation, bytes);
  for (mob_rank_t i = 0; status == MOB_OK && i < local_team.size(); ++i) {
    const mob_rank_t member = team.map().rank_of(local_team.map().world_rank(i));
    status = services_.segment.window().allow(
        allocation->region_offset(i), chunks_of(requests[static_cast<size_t>(member)].bytes));
  }
  if ((status = team.agree(status, call))) {
    // If a member died, others may have succeeded and use the memory.
    if (team.is_broken() || !claimed) return status;
    forbid_own_region(call, *allocation);
    services_.segment.release_memory(allocation->region_offset(local_team.rank()), bytes);
    services_.segment.close_chunks(allocation->offset, chunks);
    // The leader gives the chunks away only after all members have let go of them.
    if (local_team.barrier() == MOB_OK && leader) {
      services_.segment.chunks().release(allocation->offset >> kChunkShift, chunks);
    }
    return status;
  }
  if (team.spans_hosts()) {
    const uint64_t own = services_.segment.address_in(services_.peers.host().index(),
                                                      allocation->region_offset(local_team.rank()));
    if ((status = team.exchange(Allocation::Member{own, bytes}, &allocation->members))) {
      return status;
    }
    note_theirs(*allocation, std::nullopt);
  }
  team.add_user();
  *handle = place.fill(std::move(allocation));
  return MOB_OK;
}

// `bytes` is the new length of the other member's part; without it the part has the length it was
// made with.
void Allocations::note_theirs(const Allocation& allocation, std::optional<size_t> bytes) {
  if (services_.peers.bound() != 2 || allocation.members.empty()) return;
  const auto other = static_cast<size_t>(1 - allocation.team->rank());
  const Allocation::Member& part = allocation.members[other];
  const std::lock_guard lock(mutex_);
  if (const size_t length = bytes.value_or(part.bytes); length != 0) {
    theirs_[part.address] = part.address + length;
  } else if (bytes) {
    theirs_.erase(part.address);
  }
}

bool Allocations::holds(mob_rank_t rank, uint64_t lowest, uint64_t highest) const {
  if (services_.peers.is_here(rank)) return false;
  const std::lock_guard lock(mutex_);
  const auto next = theirs_.upper_bound(lowest);
  return lowest < highest && next != theirs_.begin() && highest <= std::prev(next)->second;
}

void Allocations::set_schedule(const Allocation& allocation,
                               std::optional<schedule::Policy> policy) {
  std::vector<HintedRange> ranges;
  if (policy) {
    for (size_t member = 0; member < allocation.members.size(); ++member) {
      const auto& [address, bytes] = allocation.members[member];
      const mob_rank_t rank = allocation.team->map().world_rank(static_cast<mob_rank_t>(member));
      ranges.push_back({rank, address, address + bytes});
    }
  }
  services_.scheduler.set_hint(&allocation, std::move(ranges), policy);
}

// Finds room for the parts of one host's members. The leader looks for it, for all of them.
mob_status_t Allocations::claim(const char* call, Team& local_team, uint64_t stride,
                                Allocation* allocation) {
  struct Place {
    mob_status_t status;
    uint64_t first;
  };
  Place place{MOB_OK, 0};
  const bool leader = local_team.rank() == 0;
  const uint64_t chunks = (stride >> kChunkShift) * static_cast<uint64_t>(local_team.size());
  if (leader) place.status = services_.segment.chunks().claim(chunks, &place.first);
  std::vector<Place> places;
  if (const mob_status_t status = local_team.exchange(place, &places)) return status;
  allocation->offset = places[0].first << kChunkShift;
  if (places[0].status == MOB_OK || leader) return places[0].status;
  if (places[0].status != MOB_ERR_MEMORY) {
    return fail(MOB_ERR_PEER, "%s failed here because it failed at rank %d with %s", call,
                local_team.map().world_rank(0), mob_status_name(places[0].status));
  }
  return fail(places[0].status,
              "%s: %d parts of up to %zu bytes do not fit into what is left of the "
              "window of %zu bytes; free allocations or raise MOBIUS_WINDOW_BYTES",
              call, local_team.size(), static_cast<size_t>(stride),
              services_.segment.window().bytes());
}

mob_status_t Allocations::grow(const char* call, const Allocation& allocation, size_t bytes,
                               size_t new_bytes) {
  Team& team = *allocation.team;
  Team& local_team = team.local_team();
  const uint64_t own = allocation.region_offset(local_team.rank());
  const uint64_t had = chunks_of(bytes);
  const uint64_t more = chunks_of(new_bytes) - had;
  mob_status_t status = Segment::check_available(new_bytes - bytes);
  if (status == MOB_OK) status = services_.segment.reserve_memory(own + bytes, new_bytes - bytes);
  for (mob_rank_t i = 0; status == MOB_OK && more > 0 && i < local_team.size(); ++i) {
    status =
        services_.segment.window().allow(allocation.region_offset(i) + (had << kChunkShift), more);
  }
  if ((status = team.agree(status, call))) {
    if (team.is_broken()) return status;  // others may have succeeded and use the memory
    services_.segment.release_memory(own + bytes, new_bytes - bytes);
    for (mob_rank_t i = 0; more > 0 && i < local_team.size(); ++i) {
      services_.segment.close_chunks(allocation.region_offset(i) + (had << kChunkShift), more);
    }
    return status;
  }
  services_.segment.chunks().set_region(own >> kChunkShift,
                                        {own, new_bytes, services_.peers.host().index()});
  services_.rkeys.allow(services_.segment.address_in(services_.peers.host().index(), own),
                        new_bytes);
  note_theirs(allocation, new_bytes);
  // A member's new bytes are used only after that member has registered them.
  return team.barrier();
}

// Each member reserves the pages of its own part, which also places them on its NUMA node.
mob_status_t Allocations::make_own_region(const Allocation& allocation, size_t bytes) {
  const uint64_t offset = allocation.region_offset(allocation.team->local_team().rank());
  if (const mob_status_t status = services_.segment.reserve_memory(offset, bytes)) return status;
  services_.segment.chunks().set_region(offset >> kChunkShift,
                                        {offset, bytes, services_.peers.host().index()});
  services_.rkeys.allow(services_.segment.address_in(services_.peers.host().index(), offset),
                        bytes);
  return MOB_OK;
}

// From now on other hosts cannot write there without asking this process.
void Allocations::forbid_own_region(const char* call, const Allocation& allocation) {
  const uint64_t offset = allocation.region_offset(allocation.team->local_team().rank());
  services_.rkeys.forbid(call,
                         services_.segment.address_in(services_.peers.host().index(), offset));
}

// A barrier. Checks that all members free the same allocation.
mob_status_t Allocations::agree_on(const char* call, Team& team, uint64_t name) {
  std::vector<uint64_t> names;
  if (const mob_status_t status = team.exchange(name, &names)) return status;
  const auto other = std::ranges::find_if(names, [&](uint64_t n) { return n != names[0]; });
  if (other == names.end()) return MOB_OK;
  const bool has_null = names[0] == kNoName || *other == kNoName;
  return fail(MOB_ERR_ARGUMENT,
              "%s: ranks %d and %d free different allocations%s; all members free the same, in the "
              "same order",
              call, team.map().world_rank(0),
              team.map().world_rank(static_cast<mob_rank_t>(other - names.begin())),
              has_null ? " (one of them passes null)" : "");
}

mob_status_t Allocations::release_none(const char* call) {
  return agree_on(call, services_.teams.world(), kNoName);
}

mob_status_t Allocations::release(const char* call, uint64_t handle) {
  // Takes part also after an error of a transfer, because the other members wait.
  FirstError completed;
  completed.keep(complete_all(services_, call));
  const Allocation& named = *live_.find(handle);
  Team& team = *named.team;
  // No member takes memory away that another still uses, and the chunks are reused only after all
  // members have let go of them. If a member's death leaves that uncertain, the memory stays
  // allocated.
  mob_status_t status = agree_on(call, team, named.name());
  if (status == MOB_ERR_ARGUMENT) return status;
  const std::unique_ptr<Allocation> allocation = live_.remove(handle);
  services_.scheduler.set_hint(allocation.get(), {}, std::nullopt);
  note_theirs(*allocation, 0);
  team.remove_user();
  if (status != MOB_OK) return status;
  Team& local_team = team.local_team();
  const uint64_t chunks =
      (allocation->stride >> kChunkShift) * static_cast<uint64_t>(local_team.size());
  Region own{};
  if (services_.segment.chunks().find(allocation->region_offset(local_team.rank()), &own)) {
    services_.segment.chunks().clear_region(own);
  }
  forbid_own_region(call, *allocation);
  services_.segment.close_chunks(allocation->offset, chunks);
  services_.segment.release_memory(allocation->region_offset(local_team.rank()),
                                   allocation->stride);
  if ((status = team.barrier())) return status;
  if (local_team.rank() == 0) {
    // Processes outside the team may have remembered something about these chunks.
    const bool all_let_go = local_team.size() == services_.peers.host().bound();
    services_.segment.chunks().release(allocation->offset >> kChunkShift, chunks, all_let_go);
  }
  return completed.tell();
}

}  // namespace mobius::engine
