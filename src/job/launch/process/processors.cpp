// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/process/processors.h"

#include <cerrno>
#include <new>

namespace mobius::launch {

std::vector<int> allowed_processors() {
  std::vector<int> found;
  // The kernel refuses sets smaller than its own and does not tell its size.
  for (int most = 1024; most <= (1 << 20); most *= 2) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (set == nullptr) throw std::bad_alloc();
    const size_t bytes = CPU_ALLOC_SIZE(most);
    const bool got = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !got && errno == EINVAL;
    for (int cpu = 0; got && cpu < most; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) found.push_back(cpu);
    }
    CPU_FREE(set);
    if (!too_small) break;
  }
  return found;
}

ProcessorSet::~ProcessorSet() {
  if (set_ != nullptr) CPU_FREE(set_);
}

void ProcessorSet::set_only(int processor) {
  if (set_ != nullptr) CPU_FREE(set_);
  set_ = CPU_ALLOC(processor + 1);
  if (set_ == nullptr) throw std::bad_alloc();
  bytes_ = CPU_ALLOC_SIZE(processor + 1);
  CPU_ZERO_S(bytes_, set_);
  CPU_SET_S(processor, bytes_, set_);
}

}  // namespace mobius::launch
