// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/locks/shared_lock.h"

namespace mobius::engine {

bool LivenessProbe::is_dead(uint32_t owner) {
  const mob_rank_t rank = Peers::lock_owner(owner);
  if (rank < 0 || rank >= peers_.most()) return false;
  // A release by a process of another host goes to the rank that hosts the lock: once that rank is
  // gone, nobody releases the lock any more.
  return peers_.is_lost(rank) || (host_ >= 0 && !peers_.is_here(rank) && peers_.is_lost(host_));
}

void BriefLockGuard::lock_contended(Peers& peers, os::BriefLockWord& word, uint32_t self) {
  LivenessProbe probe(peers);
  os::lock_contended(word, self, peers.host().policy(), probe);
}

}  // namespace mobius::engine
