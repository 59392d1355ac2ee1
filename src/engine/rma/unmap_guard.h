// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Tells whether the calling thread may have unmapped or protected memory while it was outside the
// library. A system call that changes mappings takes thousands of ticks, since it notifies other
// processors. A thread that goes from one call of the library straight to the next is outside for
// some tens of ticks, and for some hundreds with each cache line from a distant processor. So the
// limit is a third of the least time of such system calls, as measured here.

#include <atomic>
#include <cstdint>

#include "os/cpu/ticks.h"
#include "os/memory/mapping_cost.h"

namespace mobius::engine {

class UnmapGuard {
 public:
  // Measures the limit. Before that, every time outside counts as long.
  static void measure() {
    constexpr uint64_t kShare = 3;
    most_ticks.store(os::least_ticks_to_unmap() / kShare, std::memory_order_relaxed);
  }

  // The thread is in the library between end() and begin(). They nest. Delegation::forget_memory()
  // covers functions of the program that run meanwhile. `matters`: there is memory that may be
  // unmapped; reading the clock needlessly costs a lock and its unlock 90 ns.
  static void begin(bool matters) {
    if (--stays == 0 && matters) since = os::ticks();
  }
  // Whether the thread was outside for long enough, or that is unknown.
  static bool end(bool matters) {
    return stays++ == 0 && matters &&
           os::ticks() - since >= most_ticks.load(std::memory_order_relaxed);
  }

 private:
  static inline std::atomic<uint64_t> most_ticks = 0;
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local uint64_t since = 0;
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local uint32_t stays = 0;
};

}  // namespace mobius::engine
