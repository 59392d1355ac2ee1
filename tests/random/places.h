// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the actors of a rank share.

#include <mobius/mobius.h>

#include <vector>

#include "random/segment.h"

namespace random_program {

// Where things are in every rank; the same for all actors of a rank.
struct Places {
  std::vector<unsigned char*> parts;    // address of each rank's part, in that rank
  std::vector<mob_counter_t> counters;  // of every actor: what it is told by
  std::vector<mob_team_t> teams;        // by lane
  std::vector<mob_heap_t> heaps;        // by lane
  unsigned expose_flags = 0;

  // Locks for chains, and after them one of each kind for each lane.
  mob_mutexes_t mutexes = nullptr;
  std::vector<mob_access_t> access;
  std::vector<mob_lock_t*> locks;  // of each rank, as seen by the caller; none if not all are near
};

// Of one rank. Lock::kWord stands for a mutex where not all ranks are host-mates.
struct LockPlace {
  Lock lock;
  size_t which;  // 0 for chains, lane + 1 for lanes
  mob_rank_t rank;
};

// Ends the program if it was recovered from somebody, who would be alive.
void acquire(const Places& places, const LockPlace& lock);
bool try_acquire(const Places& places, const LockPlace& lock, mob_access_mode_t mode);
void release(const Places& places, const LockPlace& lock);

}  // namespace random_program
