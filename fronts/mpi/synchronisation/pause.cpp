// SPDX-License-Identifier: BSD-3-Clause
#include "synchronisation/pause.h"

#include <mobius/mobius.h>

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "binding/bootstrap.h"

namespace mobius::mpi {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

}  // namespace

bool Pause::once() {
  if (++rounds_ <= kSpins) {
    relax();
    return false;
  }
  let_mpi_progress();
  static_cast<void>(mob_poll());
  if (rounds_ <= kSpins + kYields) {
    sched_yield();
    return false;
  }
  const timespec nap{0, nap_ns_};
  nanosleep(&nap, nullptr);
  nap_ns_ = std::min(nap_ns_ + nap_ns_ / 8, kLongestNapNs);
  return rounds_ % 64 == 0;
}

}  // namespace mobius::mpi
