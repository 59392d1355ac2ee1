// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace mobius::os {
namespace {

std::atomic<bool> is_granted = false;

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void prepare_heavy_fences() {
#ifndef __SANITIZE_THREAD__
  if (has_heavy_fences()) return;
  // Release pairs with the acquire in has_heavy_fences().
  is_granted.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0,
                   std::memory_order_release);
#endif
}

bool has_heavy_fences() { return is_granted.load(std::memory_order_acquire); }

void heavy_fence() {
  // Cannot fail after registration. If it did, two threads could hold one lock.
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) std::abort();
}

}  // namespace mobius::os
