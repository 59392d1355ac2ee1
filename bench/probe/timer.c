/* SPDX-License-Identifier: BSD-3-Clause */
#include "timer.h"

#include <stdlib.h>

enum { kReads = 2001 };

static int compare(const void* left, const void* right) {
  int64_t a = *(const int64_t*)left, b = *(const int64_t*)right;
  return (a > b) - (a < b);
}

probe_timer_t probe_timer_measure(void) {
  int64_t times[kReads];
  for (int warm = 0; warm < 2; warm++) {
    int64_t before = probe_now_ns();
    for (int i = 0; i < kReads; i++) {
      int64_t now = probe_now_ns();
      times[i] = now - before;
      before = now;
    }
  }
  qsort(times, kReads, sizeof times[0], compare);

  /* Measured times are multiples of the resolution, and with this many of them two neighbours
   * differ by one. A clock so coarse that all are equal resolves no better than one read. */
  int64_t resolution = 0;
  for (int i = 1; i < kReads; i++) {
    int64_t step = times[i] - times[i - 1];
    if (step > 0 && (resolution == 0 || step < resolution)) resolution = step;
  }
  probe_timer_t timer;
  timer.overhead_ns = (double)times[kReads / 2];
  timer.resolution_ns = resolution > 0 ? (double)resolution : timer.overhead_ns;
  if (timer.overhead_ns < timer.resolution_ns) timer.overhead_ns = timer.resolution_ns;
  return timer;
}
