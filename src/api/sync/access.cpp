// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/access.h"

#include <mobius/access.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_access;
using api::check_live;
using api::check_not_null;
using base::fail;
using engine::Access;
using engine::ClaimMode;

namespace {

mob_status_t find_target(const char* call, mob_access_t handle, mob_rank_t rank, Access** access,
                         mob_rank_t* member) {
  if (const mob_status_t status = check_access(call, handle, access)) return status;
  return api::check_team_rank(call, (*access)->team(), rank, member);
}

mob_status_t check_mode(const char* call, mob_access_mode_t mode) {
  if (mode == MOB_SHARED || mode == MOB_EXCLUSIVE) return MOB_OK;
  return fail(MOB_ERR_ARGUMENT, "%s: mode %d is neither MOB_SHARED nor MOB_EXCLUSIVE", call,
              static_cast<int>(mode));
}

}  // namespace

mob_status_t mob_access_create(mob_team_t team, mob_access_t* access) {
  constexpr const char* kCall = "mob_access_create";
  engine::Team* members = nullptr;
  if (const mob_status_t status = api::check_team(kCall, team, &members)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  // A wrong call takes part too, because the other members wait for it.
  mob_status_t mine = check_not_null(kCall, access, "the result");
  engine::Registry<Access>::Place place(engine::engine_of_object(team).accesses());
  if (mine == MOB_OK) mine = place.check(kCall);
  return api::together(kCall, *members, [&] {
    std::unique_ptr<Access> made;
    const mob_status_t status =
        Access::make(engine::engine_of_object(team).sync_services(), *members, mine, &made);
    if (status != MOB_OK) return status;
    *access = reinterpret_cast<mob_access_t>(place.fill(std::move(made)));
    return MOB_OK;
  });
}

mob_status_t mob_access_free(mob_access_t access) {
  constexpr const char* kCall = "mob_access_free";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (access == nullptr) return MOB_OK;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  Access* found = nullptr;
  if (const mob_status_t status = check_access(kCall, access, &found)) return status;
  return api::together(kCall, found->team(), [&] {
    const mob_status_t status = found->release();
    if (status == MOB_OK)
      engine::engine_of_object(access).accesses().remove(reinterpret_cast<uintptr_t>(access));
    return status;
  });
}

mob_status_t mob_access_lock(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode,
                             int* recovered) {
  constexpr const char* kCall = "mob_access_lock";
  Access* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_target(kCall, access, rank, &found, &member)) return status;
  if (const mob_status_t status = check_mode(kCall, mode)) return status;
  return api::without_exceptions(kCall, [&] {
    return mode == MOB_SHARED ? found->lock_shared(kCall, member, recovered)
                              : found->lock_exclusive(kCall, member, recovered);
  });
}

mob_status_t mob_access_lock_nbi(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode) {
  constexpr const char* kCall = "mob_access_lock_nbi";
  Access* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_target(kCall, access, rank, &found, &member)) return status;
  if (const mob_status_t status = check_mode(kCall, mode)) return status;
  return api::without_exceptions(kCall, [&] {
    return found->start_lock(kCall, member,
                             mode == MOB_SHARED ? ClaimMode::kShared : ClaimMode::kExclusive);
  });
}

mob_status_t mob_access_trylock(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode,
                                int* acquired, int* recovered) {
  constexpr const char* kCall = "mob_access_trylock";
  Access* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_target(kCall, access, rank, &found, &member)) return status;
  if (const mob_status_t status = check_mode(kCall, mode)) return status;
  if (const mob_status_t status = check_not_null(kCall, acquired, "the result")) return status;
  return api::without_exceptions(kCall, [&] {
    return mode == MOB_SHARED ? found->try_shared(kCall, member, acquired, recovered)
                              : found->try_exclusive(kCall, member, acquired, recovered);
  });
}

mob_status_t mob_access_unlock(mob_access_t access, mob_rank_t rank) {
  constexpr const char* kCall = "mob_access_unlock";
  Access* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_target(kCall, access, rank, &found, &member)) return status;
  return api::without_exceptions(kCall, [&] { return found->unlock(kCall, member); });
}

mob_status_t mob_access_lock_all(mob_access_t access, int* recovered) {
  constexpr const char* kCall = "mob_access_lock_all";
  Access* found = nullptr;
  if (const mob_status_t status = check_access(kCall, access, &found)) return status;
  return api::without_exceptions(kCall, [&] { return found->lock_all(kCall, recovered); });
}

mob_status_t mob_access_unlock_all(mob_access_t access) {
  constexpr const char* kCall = "mob_access_unlock_all";
  Access* found = nullptr;
  if (const mob_status_t status = check_access(kCall, access, &found)) return status;
  return api::without_exceptions(kCall, [&] { return found->unlock_all(kCall); });
}
