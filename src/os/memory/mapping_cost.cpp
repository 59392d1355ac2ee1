// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/mapping_cost.h"

#include <sys/mman.h>

#include <algorithm>

#include "os/cpu/ticks.h"

namespace mobius::os {

uint64_t least_ticks_to_unmap() {
  constexpr int kTries = 8;
  constexpr size_t kBytes = 4096;
  uint64_t least = UINT64_MAX;
  const auto time = [&least](auto call) {
    const uint64_t begin = ticks();
    if (call() == 0) least = std::min(least, ticks() - begin);
  };
  for (int i = 0; i < kTries; ++i) {
    // Untouched, because that is the fastest to remove.
    void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 0;
    time([page] { return mprotect(page, kBytes, PROT_NONE); });
    mprotect(page, kBytes, PROT_READ | PROT_WRITE);
    time([page] { return munmap(page, kBytes); });
  }
  return least != UINT64_MAX ? least : 0;
}

}  // namespace mobius::os
