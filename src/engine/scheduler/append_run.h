// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the thread that has the bias of a queue's lock records by itself: what goes on where the
// call before it ended, which makes the last operation of the queue longer, and one more of a kind
// that is recorded without a further look. A program that puts or gets neighbours one by one pays
// some thirty instructions a call, none of them atomic.

#include <mobius/rma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/biased_lock.h"
#include "schedule/operation.h"

namespace mobius::engine {

// Of one queue of the scheduler. Whoever takes its lock otherwise counts what was noted here to the
// last operation, and ends the thread's licence (Scheduler::Queue::Lock). What the inlined calls
// know of it is in <mobius/detail/stretch_inline.h>.
struct AppendRun : mob_stretch_t_ {
  static constexpr size_t kMostBytes = MOB_STRETCH_MOST_BYTES_;
  static_assert(MOB_STRETCH_UNIT_ == schedule::kMemoryUnit);

  static constexpr uint64_t kNobody = ~uint64_t{0};
  static uint64_t whose(schedule::Kind kind, mob_rank_t rank) {
    return mob_stretch_of_(rank, kind == schedule::Kind::kGet ? 1 : 0);
  }

  constexpr AppendRun() noexcept : mob_stretch_t_{}, lock(bias) { who = kNobody; }

  // Whether a call may go on with the last operation, as far as can be told without the lock.
  bool is_next(uint64_t remote, const void* local, size_t bytes) const {
    return mob_stretch_is_next_(this, reinterpret_cast<const void*>(remote), local, bytes) != 0;
  }
  // Where the next call goes on at both sides. Needs the lock.
  void set_next(const char* local, uint64_t remote) {
    std::atomic_ref(next_local).store(local, std::memory_order_relaxed);
    std::atomic_ref(next_remote).store(remote, std::memory_order_relaxed);
  }

  os::BiasedLock lock;  // guards the queue
  // Calls of the thread with the bias that begin here, in so many bytes, may be recorded as it
  // recorded the last one, as long as `left` says so: to the same target, in the default context,
  // by the same policy, which packs, and unfenced.
  uint64_t alike_begin = 0;
  uint64_t alike_bytes = 0;
};

// The calling thread's stretch, if it has one.
inline AppendRun& last_append_run() {
  return static_cast<AppendRun&>(*std::atomic_ref(mob_stretch_).load(std::memory_order_relaxed));
}
inline void set_last_append_run(AppendRun& stretch) {
  std::atomic_ref(mob_stretch_).store(&stretch, std::memory_order_relaxed);
}

// Has the calling thread's next call look at everything: something may be different for it.
void leave_append_run();

}  // namespace mobius::engine
