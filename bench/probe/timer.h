/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_TIMER_H
#define PROBE_TIMER_H

/**
 * @file
 * The clock. CLOCK_MONOTONIC, because every host has it and a read costs about as much as a
 * serialised read of the cycle counter (43 and 33 ns on the machine of this decision): the counter
 * would only shorten batches by a quarter, and need a calibration that can be wrong.
 */

#include <stdint.h>
#include <time.h>

#define PROBE_TIMER_NAME "clock_gettime(CLOCK_MONOTONIC)"

typedef struct probe_timer {
  double overhead_ns;   /* median time between two consecutive reads */
  double resolution_ns; /* smallest difference between two measured times */
} probe_timer_t;

static inline int64_t probe_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

probe_timer_t probe_timer_measure(void);

#endif
