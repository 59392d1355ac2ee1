/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_PATTERN_H
#define PROBE_PATTERN_H

/**
 * @file
 * The expected content of the data and its guards.
 */

#include "adapter.h"

enum {
  PROBE_GUARD_BYTES = 4096,
  /* Room in a region for the data to start one page above a page boundary. */
  PROBE_REGION_EXTRA_BYTES = 4 * PROBE_GUARD_BYTES
};

/** A pattern: these four numbers determine every byte. */
typedef struct probe_pattern {
  uint64_t seed;
  uint64_t bytes;
  uint64_t direction;
  uint64_t repetition;
} probe_pattern_t;

/** A wrong byte. */
typedef struct probe_fault {
  int64_t byte; /* from the start of the data; negative in the guard below */
  int expected;
  int got;
  const char* where; /* part of the region, static */
} probe_fault_t;

/** Bytes from the start of a region at `region` to its data. */
size_t probe_data_offset(const void* region);

/** Bytes from the start of the data to the flag. */
size_t probe_flag_distance(size_t bytes);

/** Writes the pattern or, if `inverted`, its complement, which differs in every byte. */
void probe_pattern_fill(const probe_pattern_t* pattern, int inverted, probe_transfer_t* transfer);

/**
 * The surroundings of a rank's data: guards, pad and first flag. They differ between the ranks, so
 * that one byte too many, copied from the other rank's guard, is detected.
 *
 * A flag that is put after the data overwrites an error there: in a ping-pong with flags, up to 8
 * bytes too many are not detected if the size is a multiple of 8. Other sizes, and the completion
 * experiment of the same operation, detect them.
 */
typedef struct probe_frame {
  uint64_t seed;
  uint64_t bytes;
  uint64_t rank;
} probe_frame_t;

/** The initial value of the flag. */
uint64_t probe_first_flag(const probe_frame_t* frame);

/** Writes guards, pad and flag. */
void probe_frame_fill(const probe_frame_t* frame, probe_transfer_t* transfer);

/** Compares the whole region. @return 1 and the first fault, data first, or 0 */
int probe_region_check(const probe_pattern_t* pattern, const probe_frame_t* frame,
                       const probe_transfer_t* transfer, probe_fault_t* fault);

#endif
