/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_APEX_H
#define SUITE_APEX_H

/**
 * @file
 * APEX-Map (paper 4): a global array of doubles, M bytes of it with each rank, is read in blocks of
 * L doubles that begin where a power law of parameter K says. K = 1: anywhere; small K: mostly near
 * the start of the reader's own part.
 */

#include "session.h"

enum { APEX_ARRAYS = 4 };

typedef struct apex {
  suite_path_t path;
  double k;
  size_t words;    /* of each rank's part, whole blocks */
  size_t block;    /* L, in words */
  size_t accesses; /* of one index array */
  uint64_t passes; /* over index arrays, of a repetition */
  uint64_t* indices[APEX_ARRAYS];
  double sums[APEX_ARRAYS]; /* what a sequential run sums up for each */
  uint64_t next;            /* array of the next pass */
  double sum;               /* of all passes */
  double expected;
  double* buffer;
  int64_t working_ns, waiting_ns;
} apex_t;

/** What lies at a place of the global array. Small whole numbers: sums are exact. */
static inline double apex_value(uint64_t index) { return (double)(index * 2654435761u % 1009); }

/** Sum of a block, as the program that is measured computes it. */
static inline double apex_compute(const double* data, size_t words) {
  double sum = 0;
  for (size_t i = 0; i < words; i++) sum += data[i];
  return sum;
}

/** Passes by requests and replies: what a library's two-sided transfers need instead of gets. */
typedef int apex_passes_t(apex_t* apex, uint64_t passes);
/** Set by a library that has them, else null. */
extern apex_passes_t* apex_message_passes;

#endif
