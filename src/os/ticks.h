// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::os {

// A count that every processor of the host goes on with evenly, at about its nominal frequency; 0
// where reading one is not a matter of a few nanoseconds. Of use for short times only.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

}  // namespace mobius::os
