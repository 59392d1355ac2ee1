// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What SHMEM_DEBUG=1 checks of a collective call: that all PEs make the same one with the same
// arguments, and that buffers are symmetric and do not overlap.

#include <mobius/mobius.h>

#include <cstddef>
#include <cstdint>

namespace mobius::shmem {

struct CollectiveCall {
  const char* name;
  const void* dest = nullptr;
  const void* source = nullptr;
  size_t dest_bytes = 0;
  size_t source_bytes = 0;
  // The same in all PEs; 0 where PEs may differ.
  uint64_t bytes = 0;
  int root = 0;
};

// Collective. Ends the job with a line if the members' calls do not fit together. Nothing without
// SHMEM_DEBUG=1.
void check_collective(mob_team_t team, const CollectiveCall& call);

// The same for a call of an active set, whose pSync must be symmetric, too.
void check_of_active_set(mob_team_t team, const long* p_sync, const CollectiveCall& call);

}  // namespace mobius::shmem
