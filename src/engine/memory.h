// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collective allocations: a run of chunks of the window, one part per member of a team, all parts
// equally far apart.

#include <mobius/memory.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/chunk_table.h"
#include "engine/registry.h"
#include "engine/team.h"

namespace mobius::engine {

struct Allocation {
  Team* team;
  uint64_t offset;  // of the first part, in the window
  uint64_t stride;  // from part to part

  uint64_t part_offset(mob_rank_t team_rank) const {
    return offset + static_cast<uint64_t>(team_rank) * stride;
  }
};

// The live allocations of a process. allocate() and release() are collective over a team; the rest
// is safe from any thread at any time.
class Memory {
 public:
  explicit Memory(Engine& engine) : engine_(engine) {}

  // `valid_call` false: the arguments were wrong here, so that it fails everywhere. `room` (the
  // same everywhere, 0 for none): what parts of `bytes` bytes may grow to. `call` names the public
  // function in texts.
  mob_status_t allocate(const char* call, Team& team, size_t bytes, size_t room, bool valid_call,
                        uint64_t* handle);
  mob_status_t release(uint64_t handle);

  // Makes the parts of an allocation with room, all of `bytes` bytes, longer. Collective.
  mob_status_t grow(const char* call, const Allocation& allocation, size_t bytes, size_t new_bytes);

  // The allocation of a handle, which may be anything; null if it is not live.
  const Allocation* find(uint64_t handle) const { return live_.find(handle); }

 private:
  struct Request;
  mob_status_t check(const char* call, const Team& team, const std::vector<Request>& requests,
                     bool valid_call, size_t* largest) const;
  mob_status_t make_own_part(const Allocation& allocation, mob_rank_t team_rank, size_t bytes);

  Engine& engine_;
  Registry<Allocation> live_;
};

}  // namespace mobius::engine
