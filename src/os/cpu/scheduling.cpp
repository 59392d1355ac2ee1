// SPDX-License-Identifier: BSD-3-Clause
#include "os/cpu/scheduling.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace mobius::os {
namespace {

// The kernel's structure (sched_setattr(2)); libc declares it only since 2.41.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;  // of SCHED_OTHER: the slice, in ns
  uint64_t deadline;
  uint64_t period;
};

constexpr uint64_t kShortestSliceNs = 100'000;  // the shortest slice that the kernel grants

}  // namespace

void ask_for_short_slices() {
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kShortestSliceNs;
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
}

int own_processor() { return sched_getcpu(); }

void move_to_processor(int processor, const cpu_set_t& allowed) {
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(processor, &there);
  if (sched_setaffinity(0, sizeof there, &there) != 0) return;
  static_cast<void>(sched_setaffinity(0, sizeof allowed, &allowed));
}

}  // namespace mobius::os
