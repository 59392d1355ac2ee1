// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether the calling thread, while it was not in the library, may have given memory back, or
// protected it. That takes a system call which changes mappings and tells the processors, of
// thousands of ticks. Who goes from one call of the library to the next, as in putting something
// back and forth, is out of it for some tens, and for some hundreds with each cache line that comes
// from a processor far away. So the limit is a third of what such calls take at the least, as
// measured here.

#include <atomic>
#include <cstdint>

#include "os/mapping_cost.h"
#include "os/ticks.h"

namespace mobius::engine {

class UnmapGuard {
 public:
  // Finds the limit. Before it has been called every absence is long.
  static void measure() {
    constexpr uint64_t kShare = 3;
    most_ticks.store(os::least_ticks_to_unmap() / kShare, std::memory_order_relaxed);
  }

  // Between end() and begin() the thread is in the library. They nest. What functions of the
  // program do that are called meanwhile is seen to elsewhere. `matters`: there is something that
  // may be given back; to read the clock for nothing costs a lock and its unlock 90 ns.
  static void begin(bool matters) {
    if (--stays == 0 && matters) since = os::ticks();
  }
  // Whether it was long enough; also where that cannot be told.
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
