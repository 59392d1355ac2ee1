// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Completion counters (include/mobius/counter.h): words in memory of their owner that local peers
// reach. A handle is the address of the counter in its owner; its six low bits count how often that
// place was used before, so that freed handles differ from later ones.

#include <mobius/counter.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"

struct alignas(64) mob_counter {
  std::atomic<uint64_t> value;
  std::atomic<uint64_t> live;  // while it is one, kLive and its handle's low bits
  uint64_t uses;               // how often it was made before; its owner's
};

namespace mobius::engine {

class Counters {
 public:
  Counters(Segment& segment, Waiter& waiter) : segment_(segment), waiter_(waiter) {}

  // Made and freed by their owner. Any thread.
  mob_status_t create(mob_counter_t* counter);
  mob_status_t free(const char* call, mob_counter_t counter);
  // Whether any was ever made.
  bool any();

  // Whether a counter may be that of a guest in its own job, whose memory is not mapped here
  // (engine/guests.h): then only its owner can find it. A guest with counters serves requests.
  bool is_elsewhere(mob_rank_t owner, mob_counter_t counter);

  // The counter of a process by its handle, reachable here; null (with the error recorded for
  // `call`) if it is not one.
  mob_counter* find(const char* call, mob_rank_t owner, mob_counter_t counter);

  // One of this process, whose handle is known to be good.
  static mob_counter& own(mob_counter_t handle) {
    return *reinterpret_cast<mob_counter*>(reinterpret_cast<uintptr_t>(handle) & ~kUses);
  }

  // Adds to a counter and wakes its waiters. A thread that sees the new count sees what this thread
  // wrote before.
  void count(mob_rank_t owner, mob_counter& counter, uint64_t amount = 1);

  // In the engine of a guest of another job (engine/guests.h): the program's counters are those of
  // the process' own job.
  void share(Counters& home) { home_ = &home; }

  // Adds 1 to the counter that a handler of this process named, if it is one.
  void count_named(mob_counter_t counter);

  // Counts a word of this process, or none. The caller rings this process afterwards.
  static void count_word(uint64_t* word) {
    // Sequentially consistent: also the fence in front of the look at sleepers. Pairs with the
    // acquire of a thread that waits for the word.
    if (word != nullptr) __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
  }

  // Waits for `value` and takes it off; `*left` is the rest.
  mob_status_t wait(mob_counter& counter, uint64_t value, uint64_t* left);

 private:
  // Whether a process' counters are those of `home_`.
  bool is_shared(mob_rank_t owner) const {
    return home_ != nullptr && owner == segment_.peers().rank();
  }

  static constexpr uint64_t kUses = alignof(mob_counter) - 1;
  static constexpr uint64_t kLive = 0x7265746e756f434d & ~kUses;  // "MCounter"

  mob_status_t grow();

  Segment& segment_;
  Waiter& waiter_;
  Counters* home_ = nullptr;
  std::mutex mutex_;  // guards what follows
  std::vector<mob_counter*> free_;
  size_t made_ = 0;
};

}  // namespace mobius::engine
