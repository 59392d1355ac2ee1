// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Append runs: the thread that a queue's lock is biased to records two kinds of calls by itself. A
// call that continues where the call before it ended makes the queue's last operation longer. A
// call like the one before it is recorded without further checks. A program that puts or gets
// neighbouring elements one by one pays some thirty instructions a call, none of them atomic.

#include <mobius/rma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/sync/biased_lock.h"
#include "schedule/operation.h"

namespace mobius::engine {

// The append run of one queue of the scheduler. Another thread that takes the queue's lock adds the
// calls noted here to the last operation and ends the run (Scheduler::Queue::Lock). The inlined
// calls know the fields in <mobius/detail/append_run_inline.h>.
struct AppendRun : mob_append_run_t_ {
  static constexpr size_t kMostBytes = MOB_APPEND_RUN_MOST_BYTES_;
  static_assert(MOB_APPEND_RUN_UNIT_ == schedule::kMemoryUnit);

  static constexpr uint64_t kNobody = ~uint64_t{0};
  static uint64_t whose(schedule::Kind kind, mob_rank_t rank) {
    return mob_append_run_of_(rank, kind == schedule::Kind::kGet ? 1 : 0);
  }

  constexpr AppendRun() noexcept : mob_append_run_t_{}, lock(bias) { who = kNobody; }

  // Whether a call may continue the last operation, as far as can be told without the lock.
  bool is_next(uint64_t remote, const void* local, size_t bytes) const {
    return mob_append_run_is_next_(this, reinterpret_cast<const void*>(remote), local, bytes) != 0;
  }
  // Sets where the next call has to begin at both sides to continue. Needs the lock.
  void set_next(const char* local, uint64_t remote) {
    std::atomic_ref(next_local).store(local, std::memory_order_relaxed);
    std::atomic_ref(next_remote).store(remote, std::memory_order_relaxed);
  }

  os::BiasedLock lock;  // guards the queue
  // Remote addresses at which calls of the biased thread may be recorded like its last one, as long
  // as `left` permits: same target, default context, same packing policy, no fence.
  uint64_t alike_begin = 0;
  uint64_t alike_bytes = 0;
};

// The calling thread's append run; one without a bias if it has none.
inline AppendRun& last_append_run() {
  return static_cast<AppendRun&>(*std::atomic_ref(mob_append_run_).load(std::memory_order_relaxed));
}
inline void set_last_append_run(AppendRun& run) {
  std::atomic_ref(mob_append_run_).store(&run, std::memory_order_relaxed);
}

// Ends the calling thread's append run, so that its next call makes all checks. For changes that
// only affect this thread's calls.
void leave_append_run();

}  // namespace mobius::engine
