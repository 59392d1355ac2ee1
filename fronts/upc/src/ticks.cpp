// SPDX-License-Identifier: BSD-3-Clause

// The clock of upc_tick.h, and Berkeley UPC's names for it.

#include <bupc_extensions.h>
#include <time.h>
#include <upc_tick.h>

#include "front.h"

extern "C" {

upc_tick_t upc_ticks_now(void) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t upc_ticks_to_ns(upc_tick_t ticks) { return ticks; }

bupc_tick_t bupc_ticks_now(void) { return upc_ticks_now(); }
uint64_t bupc_ticks_to_us(bupc_tick_t ticks) { return upc_ticks_to_ns(ticks) / 1000; }
uint64_t bupc_ticks_to_ns(bupc_tick_t ticks) { return upc_ticks_to_ns(ticks); }

double bupc_tick_granularityus(void) {
  const upc_tick_t start = upc_ticks_now();
  upc_tick_t now = start;
  while (now == start) now = upc_ticks_now();
  return static_cast<double>(now - start) / 1000;
}

double bupc_tick_overheadus(void) {
  constexpr int kTimes = 1000;
  const upc_tick_t start = upc_ticks_now();
  for (int i = 0; i < kTimes; ++i) static_cast<void>(upc_ticks_now());
  return static_cast<double>(upc_ticks_now() - start) / 1000 / kTimes;
}

}  // extern "C"
