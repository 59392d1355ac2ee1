// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Facts that the actors of a rank share.

#include <mobius/mobius.h>

#include <vector>

#include "random/segment.h"

namespace random_program {

// The places of all objects in every rank; the same for all actors of a rank.
struct Places {
  std::vector<unsigned char*> parts;    // address of each rank's part, in that rank
  std::vector<mob_counter_t> counters;  // of every actor: the counter that informs it
  std::vector<mob_team_t> teams;        // by lane
  std::vector<mob_heap_t> heaps;        // by lane
  unsigned expose_flags = 0;

  // Locks for chains, then one of each kind for each lane.
  mob_mutexes_t mutexes = nullptr;
  std::vector<mob_access_t> access;
  // Of each rank, as the caller's addresses; none if not all ranks share memory.
  std::vector<mob_lock_t*> locks;
};

// A lock of one rank. Lock::kWord stands for a mutex where not all ranks are local peers.
struct LockPlace {
  Lock lock;
  size_t which;  // 0 for chains, lane + 1 for lanes
  mob_rank_t rank;
};

// Ends the program if the lock was recovered from another rank, because none dies here.
void acquire(const Places& places, const LockPlace& lock);
bool try_acquire(const Places& places, const LockPlace& lock, mob_access_mode_t mode);
void release(const Places& places, const LockPlace& lock);

}  // namespace random_program
