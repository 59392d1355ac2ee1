// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/lock.h>

#include "api/check.h"
#include "engine/sync/locks.h"
#include "engine/sync/mutexes.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using base::fail;
using engine::Engine;
using engine::Mutexes;
using os::HybridLockWord;

namespace {

static_assert(sizeof(mob_lock_t) == sizeof(HybridLockWord));

// Finds the lock at a caller's pointer.
mob_status_t find_lock(const char* call, mob_lock_t* lock, HybridLockWord** word) {
  if (const mob_status_t status = check_live(call)) return status;
  if (const mob_status_t status = check_not_null(call, lock, "the lock")) return status;
  const auto address = reinterpret_cast<uintptr_t>(lock);
  if (address % sizeof(mob_lock_t) != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the lock at %p is not aligned to 8 bytes", call,
                static_cast<void*>(lock));
  }
  Engine& engine = engine::engine_at(lock);
  const uint64_t offset = address - engine.segment().window().base();
  engine::Region part{};
  const bool is_in_part = engine.segment().chunks().find(offset, &part) &&
                          offset - part.offset + sizeof(mob_lock_t) <= part.bytes;
  // Memory that this process moved is still at its own address.
  if (!is_in_part &&
      engine.remaps().find(engine.peers().rank(), address, sizeof(mob_lock_t)) == nullptr) {
    return fail(MOB_ERR_RANGE,
                "%s: %p is not in shared memory and would exclude no other process; see mob_ptr()",
                call, static_cast<void*>(lock));
  }
  *word = reinterpret_cast<HybridLockWord*>(lock);
  return MOB_OK;
}

mob_status_t find_mutexes(const char* call, mob_mutexes_t handle, Mutexes** mutexes) {
  if (const mob_status_t status = check_live(call)) return status;
  *mutexes = engine::engine_of_object(handle).mutexes().find(reinterpret_cast<uintptr_t>(handle));
  if (*mutexes != nullptr) return MOB_OK;
  return fail(MOB_ERR_HANDLE, "%s: %p are not live mutexes (freed before, or never made)", call,
              static_cast<void*>(handle));
}

// Finds a member's mutex, with all checks.
mob_status_t find_mutex(const char* call, mob_mutexes_t handle, size_t index, mob_rank_t rank,
                        Mutexes** mutexes, mob_rank_t* member) {
  if (const mob_status_t status = find_mutexes(call, handle, mutexes)) return status;
  if (const mob_status_t status = api::check_team_rank(call, (*mutexes)->team(), rank, member)) {
    return status;
  }
  if (index >= (*mutexes)->count(*member)) {
    return fail(MOB_ERR_RANGE, "%s: mutex %zu of rank %d, which hosts %zu", call, index, rank,
                (*mutexes)->count(*member));
  }
  return MOB_OK;
}

}  // namespace

mob_status_t mob_lock(mob_lock_t* lock, int* recovered) {
  HybridLockWord* word = nullptr;
  if (const mob_status_t status = find_lock("mob_lock", lock, &word)) return status;
  return api::without_exceptions("mob_lock", [&] {
    return engine::acquire_lock(engine::engine_at(lock).sync_services(), "mob_lock", *word,
                                recovered);
  });
}

mob_status_t mob_trylock(mob_lock_t* lock, int* acquired, int* recovered) {
  constexpr const char* kCall = "mob_trylock";
  HybridLockWord* word = nullptr;
  if (const mob_status_t status = find_lock(kCall, lock, &word)) return status;
  if (const mob_status_t status = check_not_null(kCall, acquired, "the result")) return status;
  return api::without_exceptions(kCall, [&] {
    return engine::try_acquire_lock(engine::engine_at(lock).sync_services(), kCall, *word, acquired,
                                    recovered);
  });
}

mob_status_t mob_unlock(mob_lock_t* lock) {
  HybridLockWord* word = nullptr;
  if (const mob_status_t status = find_lock("mob_unlock", lock, &word)) return status;
  return api::without_exceptions("mob_unlock", [&] {
    return engine::release_lock(engine::engine_at(lock).sync_services(), "mob_unlock", *word);
  });
}

mob_status_t mob_mutexes_create(mob_team_t team, size_t count, mob_mutexes_t* mutexes) {
  constexpr const char* kCall = "mob_mutexes_create";
  engine::Team* members = nullptr;
  if (const mob_status_t status = api::check_team(kCall, team, &members)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  // A wrong call takes part too, because the other members wait for it.
  mob_status_t mine = check_not_null(kCall, mutexes, "the result");
  if (mine == MOB_OK && count > MOB_MAX_MUTEXES) {
    mine = fail(MOB_ERR_RANGE, "%s: %zu mutexes; a member can host up to %d", kCall, count,
                MOB_MAX_MUTEXES);
  }
  engine::Registry<Mutexes>::Place place(engine::engine_of_object(team).mutexes());
  if (mine == MOB_OK) mine = place.check(kCall);
  return api::together(kCall, *members, [&] {
    std::unique_ptr<Mutexes> made;
    const mob_status_t status =
        Mutexes::make(engine::engine_of_object(team).sync_services(), *members, count, mine, &made);
    if (status != MOB_OK) return status;
    *mutexes = reinterpret_cast<mob_mutexes_t>(place.fill(std::move(made)));
    return MOB_OK;
  });
}

mob_status_t mob_mutexes_free(mob_mutexes_t mutexes) {
  constexpr const char* kCall = "mob_mutexes_free";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (mutexes == nullptr) return MOB_OK;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  Mutexes* found = nullptr;
  if (const mob_status_t status = find_mutexes(kCall, mutexes, &found)) return status;
  return api::together(kCall, found->team(), [&] {
    const mob_status_t status = found->release();
    if (status == MOB_OK) {
      engine::engine_of_object(mutexes).mutexes().remove(reinterpret_cast<uintptr_t>(mutexes));
    }
    return status;
  });
}

mob_status_t mob_mutex_lock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank, int* recovered) {
  constexpr const char* kCall = "mob_mutex_lock";
  Mutexes* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_mutex(kCall, mutexes, index, rank, &found, &member)) {
    return status;
  }
  return api::without_exceptions(kCall,
                                 [&] { return found->lock(kCall, member, index, recovered); });
}

mob_status_t mob_mutex_trylock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank, int* acquired,
                               int* recovered) {
  constexpr const char* kCall = "mob_mutex_trylock";
  Mutexes* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_mutex(kCall, mutexes, index, rank, &found, &member)) {
    return status;
  }
  if (const mob_status_t status = check_not_null(kCall, acquired, "the result")) return status;
  return api::without_exceptions(
      kCall, [&] { return found->try_lock(kCall, member, index, acquired, recovered); });
}

mob_status_t mob_mutex_unlock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank) {
  constexpr const char* kCall = "mob_mutex_unlock";
  Mutexes* found = nullptr;
  mob_rank_t member = 0;
  if (const mob_status_t status = find_mutex(kCall, mutexes, index, rank, &found, &member)) {
    return status;
  }
  return api::without_exceptions(kCall, [&] { return found->unlock(kCall, member, index); });
}
