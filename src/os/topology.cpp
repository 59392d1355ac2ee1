// SPDX-License-Identifier: BSD-3-Clause
#include "os/topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace mobius::os {

int processors_allowed() {
  // The kernel refuses (EINVAL) a mask shorter than its own, so grow until it fits.
  for (size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    if (sched_getaffinity(0, sets * sizeof(cpu_set_t), mask.data()) == 0) {
      return std::max(1, CPU_COUNT_S(sets * sizeof(cpu_set_t), mask.data()));
    }
  }
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace mobius::os
