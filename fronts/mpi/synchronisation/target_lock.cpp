// SPDX-License-Identifier: BSD-3-Clause
#include "synchronisation/target_lock.h"

#include <mobius/mobius.h>

#include "synchronisation/pause.h"

namespace mobius::mpi {

// Frees the lock if its exclusive holder has died. Shares of dead processes stay.
void TargetLock::free_of_dead(uint64_t seen) {
  const uint64_t held = seen >> kHolderShift;
  if (held == 0 || mob_rank_alive(static_cast<mob_rank_t>(held - 1)) != 0) return;
  while ((seen >> kHolderShift) == held &&
         !word_.compare_exchange_weak(seen, seen - (held << kHolderShift),
                                      std::memory_order_relaxed)) {
  }
}

void TargetLock::wait_shared() {
  Pause pause;
  for (;;) {
    word_.fetch_sub(kReader, std::memory_order_relaxed);
    uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & kWriters) != 0) {
      if (pause.once()) free_of_dead(seen);
      seen = word_.load(std::memory_order_relaxed);
    }
    if ((word_.fetch_add(kReader, std::memory_order_acquire) & kWriters) == 0) return;
  }
}

void TargetLock::wait_exclusive(mob_rank_t me) {
  Pause pause;
  word_.fetch_add(kWaiter, std::memory_order_relaxed);
  for (;;) {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & kReaders) == 0 && seen >> kHolderShift == 0) {
      if (word_.compare_exchange_weak(seen, seen - kWaiter + holder(me), std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return;
      }
      continue;
    }
    if (pause.once()) free_of_dead(seen);
  }
}

}  // namespace mobius::mpi
