// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::os {

// A counter that advances evenly on every processor of the host, at about the processor's nominal
// frequency; 0 where reading it takes more than a few nanoseconds. For short intervals only.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

}  // namespace mobius::os
