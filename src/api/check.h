// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Checks at the entry of public calls. MOB_NO_CHECKS removes them, for users who have measured that
// they matter.

#include <mobius/access.h>
#include <mobius/epoch.h>
#include <mobius/job.h>
#include <mobius/rma.h>
#include <mobius/team.h>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/engine.h"
#include "engine/guests.h"
#include "engine/team/together.h"

namespace mobius::api {

#ifdef MOB_NO_CHECKS
inline constexpr bool kChecks = false;
#else
inline constexpr bool kChecks = true;
#endif

[[gnu::cold]] mob_status_t state_error(const char* call);
[[gnu::cold]] mob_status_t handler_error(const char* call);
[[gnu::cold]] mob_status_t rank_error(const char* call, mob_rank_t rank);
// Where some numbers were those of processes of another job: whether the rank still names one.
mob_status_t check_named(const char* call, mob_rank_t rank);

inline mob_status_t check_live(const char* call) {
  if (kChecks && mob_size_ == 0) [[unlikely]] {
    return state_error(call);
  }
  return MOB_OK;
}

inline mob_status_t check_rank(const char* call, mob_rank_t rank) {
  if (kChecks && static_cast<uint32_t>(rank) >= static_cast<uint32_t>(mob_size_)) [[unlikely]] {
    return rank_error(call, rank);
  }
  if (kChecks && engine::guests_ever.load(std::memory_order_relaxed)) [[unlikely]] {
    return check_named(call, rank);
  }
  return MOB_OK;
}

// For calls that wait for other processes to make the same call.
inline mob_status_t check_may_wait(const char* call) {
  return engine::in_handler ? handler_error(call) : MOB_OK;
}

inline mob_status_t check_not_null(const char* call, const void* pointer, const char* what) {
  if (kChecks && pointer == nullptr) [[unlikely]] {
    return base::fail(MOB_ERR_ARGUMENT, "%s: %s is null", call, what);
  }
  return MOB_OK;
}

// For collective calls and calls that start operations, which may allocate.
using engine::without_exceptions;

using engine::together;

// An alignment of memory: 0 (the default), or a power of two up to 2 MiB.
mob_status_t check_alignment(const char* call, size_t alignment);

// Finds the allocation of a handle.
mob_status_t check_handle(const char* call, mob_mem_t mem, const engine::Allocation** allocation);

// Finds the team of a handle; also checks that the library is live.
mob_status_t check_team(const char* call, mob_team_t team, engine::Team** result);

// Finds the object of a handle; also checks that the library is live.
mob_status_t check_epoch(const char* call, mob_epoch_t handle, engine::Epochs** epochs);
mob_status_t check_access(const char* call, mob_access_t handle, engine::Access** access);

// The rank in a team of a process that the program names by its number; -1 if it is not a member.
mob_rank_t member_of(const engine::Team& team, mob_rank_t rank);
// The number by which the program names a member of a team.
mob_rank_t number_of(const engine::Team& team, mob_rank_t member);

// Finds the rank in a team of a rank of the job.
mob_status_t check_team_rank(const char* call, const engine::Team& team, mob_rank_t rank,
                             mob_rank_t* member);

// A handle is the number of its object, cast to a pointer. The world team has a number that no
// other team ever gets, because registries give out numbers with a generation above the index.
inline uint64_t team_number(mob_team_t team) { return reinterpret_cast<uintptr_t>(team); }
inline mob_team_t team_handle(uint64_t number) { return reinterpret_cast<mob_team_t>(number); }

}  // namespace mobius::api
