// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/mutexes.h"

#include <algorithm>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/progress/completion.h"
#include "engine/remote/remote_objects.h"
#include "engine/sync/lazy_lock.h"
#include "engine/sync/locks.h"

namespace mobius::engine {

mob_status_t Mutexes::make(const SyncServices& services, Team& team, size_t count,
                           mob_status_t mine, std::unique_ptr<Mutexes>* mutexes) {
  std::vector<size_t> counts;
  if (const mob_status_t status = team.exchange(mine == MOB_OK ? count : 0, &counts)) return status;
  auto made = std::make_unique<Mutexes>(services);
  made->equal_count_ = counts[0];
  size_t total = 0;
  size_t total_here = 0;
  const bool equal = std::ranges::all_of(counts, [&](size_t c) { return c == counts[0]; });
  if (!equal) made->firsts_.push_back(0);
  for (mob_rank_t member = 0; member < team.size(); ++member) {
    const size_t hosted = counts[static_cast<size_t>(member)];
    total += hosted;
    if (!equal) made->firsts_.push_back(total);
    if (team.place_here(member) < 0) continue;
    if (!equal) made->firsts_here_.push_back(total_here);
    total_here += hosted;
  }
  if (const mob_status_t status = made->area_.make(
          team, total_here * sizeof(os::PaddedHybridLockWord), mine, "mob_mutexes_create", *made)) {
    return status;
  }
  *mutexes = std::move(made);
  return MOB_OK;
}

mob_status_t Mutexes::release() {
  constexpr const char* kCall = "mob_mutexes_free";
  // All members release their mutexes before any member checks.
  mob_status_t status = team().barrier();
  const mob_rank_t self = team().rank();
  for (size_t i = 0; i < count(self) && status == MOB_OK; ++i) {
    if (!is_held(services_, mutex(self, i))) continue;
    status = base::fail(MOB_ERR_STATE, "%s: mutex %zu of rank %d is held; unlock it first", kCall,
                        i, team().map().world_rank(self));
  }
  if ((status = team().agree(status, kCall))) return status;
  return area_.release();
}

mob_status_t Mutexes::lock(const char* call, mob_rank_t member, size_t index, int* recovered) {
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  if (is_here(member)) [[likely]] {
    return acquire_lock(services_, call, mutex(member, index), recovered,
                        team().map().world_rank(member));
  }
  return services_.remote_objects.locks().acquire(call, remote(member, index),
                                                  ClaimMode::kExclusive, recovered);
}

mob_status_t Mutexes::try_lock(const char* call, mob_rank_t member, size_t index, int* acquired,
                               int* recovered) {
  if (const mob_status_t status = services_.lazy_lock.gain(call)) return status;
  if (is_here(member)) [[likely]] {
    return try_acquire_lock(services_, call, mutex(member, index), acquired, recovered,
                            team().map().world_rank(member));
  }
  return services_.remote_objects.locks().try_acquire(call, remote(member, index),
                                                      ClaimMode::kExclusive, acquired, recovered);
}

mob_status_t Mutexes::unlock(const char* call, mob_rank_t member, size_t index) {
  const mob_rank_t rank = team().map().world_rank(member);
  if (is_here(member)) [[likely]] {
    return release_lock(services_, call, mutex(member, index), rank);
  }
  const RemoteLock lock = remote(member, index);
  RemoteLocks& claims = services_.remote_objects.locks();
  if (!claims.holds(lock)) {
    return base::fail(MOB_ERR_STATE, "%s: the calling thread does not hold it; acquire it first",
                      call);
  }
  const mob_status_t status = services_.completion.complete_all(call);
  const mob_status_t asked = claims.give_back(lock, ClaimMode::kExclusive);
  return status != MOB_OK ? status : asked;
}

// The mutex that a claim of another host names; null if the claim is not valid.
os::HybridLockWord* Mutexes::claimed(const Claim& claim) const {
  const mob_rank_t self = team().rank();
  const bool sound = claim.mode == ClaimMode::kExclusive && claim.index < count(self);
  return sound ? &mutex(self, claim.index) : nullptr;
}

bool Mutexes::attempt(Claim& claim, os::OwnerProbe* probe) {
  os::HybridLockWord* word = claimed(claim);
  return word != nullptr && attempt_lock(*word, claim, probe);
}

void Mutexes::give_back(const Claim& claim) {
  os::HybridLockWord* word = claimed(claim);
  if (word != nullptr) static_cast<void>(os::unlock(*word, claim.id));
}

}  // namespace mobius::engine
