// SPDX-License-Identifier: BSD-3-Clause
#include "synchronisation/target_lock.h"

#include <mobius/mobius.h>

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "binding/bootstrap.h"

namespace mobius::mpi {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

// Spins, yields, then sleeps, and lets both libraries go on meanwhile: the holder of the lock may
// wait for what this process has to do.
class Pause {
 public:
  // True now and then: it is time to look whether the holder is alive.
  bool once() {
    if (++rounds_ <= kSpins) {
      relax();
      return false;
    }
    let_mpi_progress();
    static_cast<void>(mob_poll());
    if (rounds_ <= kSpins + kYields) {
      sched_yield();
      return false;
    }
    const timespec nap{0, nap_ns_};
    nanosleep(&nap, nullptr);
    nap_ns_ = std::min(nap_ns_ + nap_ns_ / 8, kLongestNapNs);
    return rounds_ % 64 == 0;
  }

 private:
  static constexpr unsigned kSpins = 200;
  static constexpr unsigned kYields = 200;
  static constexpr long kLongestNapNs = 1'000'000;
  unsigned rounds_ = 0;
  long nap_ns_ = 20'000;
};

}  // namespace

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
