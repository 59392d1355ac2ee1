/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_MEASURE_H
#define PROBE_MEASURE_H

/**
 * @file
 * Verifies and times one cell at all sizes. Both ranks call it; rank 0 decides batches and numbers
 * of samples, tells rank 1 between timed intervals, and writes the records.
 */

#include <stdio.h>

#include "../turns/turns.h"
#include "adapter.h"
#include "options.h"
#include "timer.h"

typedef struct probe_session {
  probe_rank_t* rank;
  const probe_options_t* options;
  probe_timer_t timer; /* rank 0 */
  FILE* file;          /* rank 0, else null */
  turns_t* turns;      /* null: samples are taken at once */
} probe_session_t;

/** Measures a cell. An error of the library in the middle ends the launch (probe_abort()): the
 * other rank may be waiting for a flag that will never come, and nothing portable could wake it.
 *  @return 1 if every size was measured or the cell refused, 0 if data were wrong */
int probe_measure_cell(probe_session_t* session, const probe_cell_t* cell);

#endif
