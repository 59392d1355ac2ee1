/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_OUTPUT_H
#define PROBE_OUTPUT_H

/**
 * @file
 * The JSON lines of a launch, written by rank 0. Each line is flushed, so that measurements survive
 * a crash. With a null `file` (the other rank) every function does nothing.
 */

#include <stdio.h>

#include "adapter.h"
#include "pattern.h"
#include "timer.h"

void probe_write_environment(FILE* file, const probe_rank_t* rank, const probe_timer_t* timer,
                             const int* cpus);
void probe_write_start(FILE* file, const probe_cell_t* cell);
/** The rounds in which samples were taken, in their order; none where they were taken at once. */
typedef struct probe_rounds {
  struct {
    uint64_t round, samples;
  }* of;
  uint64_t count;
} probe_rounds_t;

void probe_write_samples(FILE* file, const probe_cell_t* cell, size_t bytes, uint64_t batch,
                         const double* samples_ns, uint64_t count, const probe_rounds_t* rounds);
void probe_write_wrong(FILE* file, const probe_cell_t* cell, size_t bytes,
                       const probe_fault_t* fault);
void probe_write_refused(FILE* file, const probe_cell_t* cell, const char* reason);
void probe_write_end(FILE* file, const probe_cell_t* cell);
void probe_write_done(FILE* file);

#endif
