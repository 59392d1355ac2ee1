// SPDX-License-Identifier: BSD-3-Clause
#include "engine/memory.h"

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/parts.h"
#include "os/memfd.h"

namespace mobius::engine {

using base::fail;

struct Memory::Request {
  size_t bytes;
  size_t available;  // of the host; asked of the kernel by one process for all
  bool valid_call;
};

mob_status_t Memory::check(const char* call, const Team& team, const std::vector<Request>& requests,
                           bool valid_call, size_t* largest) const {
  const size_t window = engine_.window().bytes();
  size_t total = 0;
  *largest = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const mob_rank_t rank = team.map().world_rank(static_cast<mob_rank_t>(i));
    if (!requests[i].valid_call) {
      return fail(valid_call ? MOB_ERR_PEER : MOB_ERR_ARGUMENT,
                  "%s: rank %d passed a wrong argument (a null result pointer, or an "
                  "alignment that is not a power of two up to 2 MiB)",
                  call, rank);
    }
    if (requests[i].bytes > window || __builtin_add_overflow(total, requests[i].bytes, &total)) {
      return fail(MOB_ERR_RANGE,
                  "%s: %zu bytes at rank %d are more than the window of %zu bytes; see "
                  "MOBIUS_WINDOW_BYTES",
                  call, requests[i].bytes, rank, window);
    }
    *largest = std::max(*largest, requests[i].bytes);
  }
  if (total > requests[0].available) {
    return fail(MOB_ERR_MEMORY,
                "%s: the processes of this host ask for %zu bytes together, but only "
                "%zu bytes of memory are available",
                call, total, requests[0].available);
  }
  return MOB_OK;
}

mob_status_t Memory::allocate(const char* call, Team& team, size_t bytes, size_t room,
                              bool valid_call, uint64_t* handle) {
  const bool leader = team.rank() == 0;
  std::vector<Request> requests;
  mob_status_t status =
      team.exchange(Request{bytes, leader ? os::available_memory() : 0, valid_call}, &requests);
  if (status != MOB_OK) return status;
  auto allocation = std::make_unique<Allocation>();
  allocation->team = &team;
  size_t largest = 0;
  if ((status = check(call, team, requests, valid_call, &largest))) return status;
  allocation->stride = chunks_of(std::max(largest, room)) << kChunkShift;
  const uint64_t chunks = (allocation->stride >> kChunkShift) * static_cast<uint64_t>(team.size());

  struct Place {
    mob_status_t status;
    uint64_t first;
  };
  Place place{MOB_OK, 0};
  if (leader) place.status = engine_.chunks().claim(chunks, &place.first);
  std::vector<Place> places;
  if ((status = team.exchange(place, &places))) return status;
  if (places[0].status != MOB_OK) {
    if (leader) return place.status;
    return fail(places[0].status,
                "%s: %d parts of up to %zu bytes do not fit into what is left of the "
                "window of %zu bytes; free allocations or raise MOBIUS_WINDOW_BYTES",
                call, team.size(), static_cast<size_t>(allocation->stride),
                engine_.window().bytes());
  }
  allocation->offset = places[0].first << kChunkShift;

  status = make_own_part(*allocation, team.rank(), bytes);
  for (mob_rank_t i = 0; status == MOB_OK && i < team.size(); ++i) {
    status = engine_.window().allow(allocation->part_offset(i),
                                    chunks_of(requests[static_cast<size_t>(i)].bytes));
  }
  if ((status = team.agree(status, call))) {
    // With a dead member, others may have succeeded and use it.
    if (team.is_broken()) return status;
    engine_.release_memory(allocation->part_offset(team.rank()), bytes);
    engine_.close_chunks(allocation->offset, chunks);
    // Nobody may still hold what the leader gives away.
    if (team.barrier() == MOB_OK && leader) engine_.chunks().release(places[0].first, chunks);
    return status;
  }
  team.add_user();
  *handle = live_.add(std::move(allocation));
  return MOB_OK;
}

mob_status_t Memory::grow(const char* call, const Allocation& allocation, size_t bytes,
                          size_t new_bytes) {
  Team& team = *allocation.team;
  const uint64_t own = allocation.part_offset(team.rank());
  const uint64_t had = chunks_of(bytes);
  const uint64_t more = chunks_of(new_bytes) - had;
  mob_status_t status = check_available(new_bytes - bytes);
  if (status == MOB_OK) status = engine_.reserve_memory(own + bytes, new_bytes - bytes);
  for (mob_rank_t i = 0; status == MOB_OK && more > 0 && i < team.size(); ++i) {
    status = engine_.window().allow(allocation.part_offset(i) + (had << kChunkShift), more);
  }
  if ((status = team.agree(status, call))) {
    if (team.is_broken()) return status;  // others may have succeeded, and use theirs
    engine_.release_memory(own + bytes, new_bytes - bytes);
    for (mob_rank_t i = 0; more > 0 && i < team.size(); ++i) {
      engine_.close_chunks(allocation.part_offset(i) + (had << kChunkShift), more);
    }
    return status;
  }
  engine_.chunks().set_part(own >> kChunkShift, {own, new_bytes, engine_.host().index()});
  // Nobody uses the new bytes of a member before they are found.
  return team.barrier();
}

// Each member reserves the pages of its own part, which also puts them on its NUMA node.
mob_status_t Memory::make_own_part(const Allocation& allocation, mob_rank_t team_rank,
                                   size_t bytes) {
  const uint64_t offset = allocation.part_offset(team_rank);
  if (const mob_status_t status = engine_.reserve_memory(offset, bytes)) return status;
  engine_.chunks().set_part(offset >> kChunkShift, {offset, bytes, engine_.host().index()});
  return MOB_OK;
}

mob_status_t Memory::release(uint64_t handle) {
  const std::unique_ptr<Allocation> allocation = live_.remove(handle);
  Team& team = *allocation->team;
  const uint64_t chunks = (allocation->stride >> kChunkShift) * static_cast<uint64_t>(team.size());
  // Everybody has stopped using the memory before anybody takes it away, and everybody has let go
  // of it before it may be given to others. Where a death keeps that from being certain it stays.
  mob_status_t status = team.barrier();
  if (status != MOB_OK) return status;
  Part own{};
  if (engine_.chunks().find(allocation->part_offset(team.rank()), &own)) {
    engine_.chunks().clear_part(own);
  }
  engine_.close_chunks(allocation->offset, chunks);
  engine_.release_memory(allocation->part_offset(team.rank()), allocation->stride);
  status = team.barrier();
  team.remove_user();
  if (status == MOB_OK && team.rank() == 0) {
    engine_.chunks().release(allocation->offset >> kChunkShift, chunks);
  }
  return status;
}

}  // namespace mobius::engine
