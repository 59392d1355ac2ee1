// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counters: words in memory of the program, and the status that LAPI_Setcntr_wstatus() attaches to
// them.

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

// The word that the engine counts.
inline uint64_t* word_of(lapi_cntr_t* counter) {
  return counter != nullptr ? &counter->lapi_value : nullptr;
}

// Counts a counter of this task on behalf of `source`, and wakes its waiters.
void count(lapi_cntr_t* counter, unsigned source);

// Marks a task as purged in the counters that wait for it.
void note_purge(unsigned task);

// Wakes the threads that wait for counters of this task, so that they check again.
void wake_waiters();

}  // namespace lapi
