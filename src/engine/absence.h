// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether the calling thread, while it was not in the library, may have given memory back, or
// protected it. That takes a system call which changes mappings and tells the processors: at the
// least 7,200 ticks for munmap(), 4,800 for mprotect() on a virtual EPYC, Zen 4. Who goes from one
// call of the library to the next, as in putting something back and forth, is out of it for some
// tens. The limit leaves room for kernels that are ten times as fast.

#include <cstdint>

#include "os/ticks.h"

namespace mobius::engine {

class Absence {
 public:
  // Between end() and begin() the thread is in the library. They nest. What functions of the
  // program do that are called meanwhile is seen to elsewhere.
  static void begin() {
    if (--stays == 0) since = os::ticks();
  }
  // Whether it was long enough; also where that cannot be told.
  static bool end() {
    constexpr uint64_t kMostTicks = 400;
    return stays++ == 0 && (since == 0 || os::ticks() - since > kMostTicks);
  }

 private:
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local uint64_t since = 0;
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local uint32_t stays = 0;
};

}  // namespace mobius::engine
