// SPDX-License-Identifier: BSD-3-Clause
#include "api/check.h"

namespace mobius::api {

using base::fail;

mob_status_t state_error(const char* call) {
  if (engine::state() == engine::State::kBefore) {
    return fail(MOB_ERR_STATE, "%s: called before mob_init()", call);
  }
  if (engine::state() == engine::State::kForked) {
    return fail(MOB_ERR_STATE, "%s: called in a child of fork(), which is in no job", call);
  }
  return fail(MOB_ERR_STATE, "%s: called after mob_finalize()", call);
}

mob_status_t handler_error(const char* call) {
  return fail(MOB_ERR_STATE, "%s: called in the handler of a message, which must not wait", call);
}

mob_status_t rank_error(const char* call, mob_rank_t rank) {
  if (mob_size_ == 0) return state_error(call);
  // It may be of a process of another job, and above all numbers of this one, or of a process that
  // was spawned since.
  if (engine::is_of_other_job(rank)) return MOB_OK;
  engine::learn_numbers();
  if (rank >= 0 && rank < mob_size_) return MOB_OK;
  return fail(MOB_ERR_RANK, "%s: rank %d is not in this job, whose ranks are 0 to %d", call, rank,
              mob_size_ - 1);
}

mob_status_t check_named(const char* call, mob_rank_t rank) {
  const engine::EngineOf found = engine::engine_of(rank);
  if (&found.engine != &engine::engine()) return MOB_OK;
  engine::Peers& peers = engine::engine().peers();
  const mob_rank_t index = peers.host_index(rank);
  if (index < 0 || peers.host().slot(index).state.load(std::memory_order_acquire) !=
                       job::ProcessState::kAbsent) {
    return MOB_OK;
  }
  return fail(MOB_ERR_RANK,
              "%s: rank %d is of a job that is not connected with this one (any more)", call, rank);
}

mob_rank_t member_of(const engine::Team& team, mob_rank_t rank) {
  const engine::Peers& peers = team.services().peers;
  if (!peers.is_guest()) [[likely]] {
    return team.map().rank_of(rank);
  }
  for (mob_rank_t member = 0; member < team.size(); ++member) {
    if (peers.public_number(team.map().world_rank(member)) == rank) return member;
  }
  return -1;
}

mob_rank_t number_of(const engine::Team& team, mob_rank_t member) {
  return team.services().peers.public_number(team.map().world_rank(member));
}

mob_status_t check_alignment(const char* call, size_t alignment) {
  if ((alignment & (alignment - 1)) == 0 && alignment <= engine::kChunkBytes) return MOB_OK;
  return fail(MOB_ERR_ARGUMENT, "%s: the alignment %zu is not a power of two up to 2 MiB", call,
              alignment);
}

mob_status_t check_handle(const char* call, mob_mem_t mem, const engine::Allocation** allocation) {
  *allocation = engine::engine_of_object(mem).allocations().find(reinterpret_cast<uintptr_t>(mem));
  if (*allocation == nullptr) {
    return fail(MOB_ERR_HANDLE,
                "%s: %p is not a live allocation (freed before, or never allocated)", call,
                static_cast<void*>(mem));
  }
  return MOB_OK;
}

mob_status_t check_team(const char* call, mob_team_t team, engine::Team** result) {
  if (const mob_status_t status = check_live(call)) return status;
  engine::Teams& teams = engine::engine_of_handle(team_number(team)).teams();
  *result = team == MOB_TEAM_WORLD ? &teams.world() : teams.find(team_number(team));
  if (*result == nullptr) {
    return fail(MOB_ERR_HANDLE, "%s: %p is not a live team (freed before, or never made)", call,
                static_cast<void*>(team));
  }
  return MOB_OK;
}

mob_status_t check_epoch(const char* call, mob_epoch_t handle, engine::Epochs** epochs) {
  if (const mob_status_t status = check_live(call)) return status;
  *epochs = engine::engine_of_object(handle).epochs().find(reinterpret_cast<uintptr_t>(handle));
  if (*epochs != nullptr) [[likely]] {
    return MOB_OK;
  }
  return fail(MOB_ERR_HANDLE, "%s: %p is not a live epoch object (freed before, or never made)",
              call, static_cast<void*>(handle));
}

mob_status_t check_access(const char* call, mob_access_t handle, engine::Access** access) {
  if (const mob_status_t status = check_live(call)) return status;
  *access = engine::engine_of_object(handle).accesses().find(reinterpret_cast<uintptr_t>(handle));
  if (*access != nullptr) [[likely]] {
    return MOB_OK;
  }
  return fail(MOB_ERR_HANDLE, "%s: %p is not a live access object (freed before, or never made)",
              call, static_cast<void*>(handle));
}

mob_status_t check_team_rank(const char* call, const engine::Team& team, mob_rank_t rank,
                             mob_rank_t* member) {
  if (const mob_status_t status = check_rank(call, rank)) return status;
  *member = member_of(team, rank);
  if (*member >= 0) return MOB_OK;
  return fail(MOB_ERR_RANK, "%s: rank %d is not in the team of this object", call, rank);
}

}  // namespace mobius::api
