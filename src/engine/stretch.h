// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the thread that has the bias of a queue's lock records by itself: what goes on where the
// call before it ended, which makes the last operation of the queue longer, and one more of a kind
// that is recorded without a further look. A program that puts or gets neighbours one by one pays
// some twenty instructions a call, none of them atomic.

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/biased_lock.h"
#include "schedule/operation.h"

namespace mobius::engine {

// Of one queue of the scheduler. Whoever takes its lock otherwise counts what was noted here to the
// last operation, and ends the thread's licence (Scheduler::Queue::Lock).
struct Stretch {
  // Calls of fewer bytes may be values, which stay whole by themselves; what is longer stays for
  // the plan to order.
  static constexpr size_t kLeastBytes = 9;
  static constexpr size_t kMostBytes = 4096;

  static constexpr uint64_t kNobody = ~uint64_t{0};
  static constexpr uint64_t whose(schedule::Kind kind, mob_rank_t rank) {
    return static_cast<uint64_t>(kind) << 32 | static_cast<uint32_t>(rank);
  }

  // Whether a call may go on with the last operation, as far as can be told without the lock.
  bool is_next(uint64_t remote, const void* local, size_t bytes) const {
    return next_local.load(std::memory_order_relaxed) == local &&
           next_remote.load(std::memory_order_relaxed) == remote &&
           bytes - kLeastBytes <= kMostBytes - kLeastBytes;
  }

  // True if the call is one of those, of the calling thread, and is noted.
  bool go_on(uint64_t from, const void* remote, const void* local, size_t bytes) {
    const auto place = reinterpret_cast<uint64_t>(remote);
    if (!is_next(place, local, bytes) || !lock.enter()) return false;
    // From here on nobody else changes anything; and has not since the looks above, as the bias did
    // not come and go.
    const bool goes_on = who == from && further < left;
    if (goes_on) [[likely]] {
      next_local.store(static_cast<const char*>(local) + bytes, std::memory_order_relaxed);
      next_remote.store(place + bytes, std::memory_order_relaxed);
      ++further;
    }
    lock.leave();
    return goes_on;
  }

  // Where the last operation ends at both sides, if a call that goes on there may become part of
  // it; else null. Changed with the lock, and looked at without before it is worth taking that.
  std::atomic<const char*> next_local = nullptr;
  std::atomic<uint64_t> next_remote = 0;

  os::BiasedLock lock;     // guards the queue, and what follows
  uint64_t who = kNobody;  // whose() of the last operation, if it can become longer as it is
  uint32_t further = 0;    // calls that made it longer, and were not counted to it yet
  // How many more calls, those included, the thread with the bias may record as it recorded the
  // last one: to the same target, in the default context, by the same policy, which packs, and
  // unfenced.
  uint32_t left = 0;
  bool is_alike = false;  // whatever their addresses are
};

// The one that was last opened to the thread with its bias, or one that never is. Any thread may
// have published it: it is of no use to those without the bias.
extern constinit std::atomic<Stretch*> last_stretch;

// Has the calling thread's next call look at everything: something may be different for it.
void leave_stretch();

}  // namespace mobius::engine
