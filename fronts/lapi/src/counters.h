// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counters: words in memory of the program, with what LAPI_Setcntr_wstatus() hangs on them.

#include <lapi.h>

#include <atomic>
#include <cstdint>

struct lapi_cntr_status {
  int destinations;
  const unsigned* list;
  int* status;
  std::atomic<bool> has_waiter;
};

namespace lapi {

struct Context;

// What the engine counts.
inline uint64_t* word_of(lapi_cntr_t* counter) {
  return counter != nullptr ? &counter->lapi_value : nullptr;
}

// Counts a counter of this task, because of `source`, and wakes who waits for it.
void count(lapi_cntr_t* counter, unsigned source);

// Marks, for counters that say what they wait for, that a task was purged.
void note_purge(unsigned task);

// Lets threads look again that wait for counters of this task.
void wake_waiters();

}  // namespace lapi
