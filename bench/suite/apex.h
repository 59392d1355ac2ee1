/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_APEX_H
#define SUITE_APEX_H

/**
 * @file
 * APEX-Map (paper 4): ranks read blocks of L doubles from a global array, of which each rank has M
 * bytes. A power law with parameter K gives the blocks' positions: anywhere for K = 1, mostly near
 * the start of the reader's own part for small K.
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
  double sums[APEX_ARRAYS]; /* the sums of a sequential run */
  uint64_t next;            /* array of the next pass */
  double sum;               /* of all passes */
  double expected;
  double* buffer;
  int64_t working_ns, waiting_ns;
} apex_t;

/** The value of an element of the global array: small whole numbers, so that sums are exact. */
static inline double apex_value(uint64_t index) { return (double)(index * 2654435761u % 1009); }

/** The sum of a block, in the order of the measured program. */
static inline double apex_compute(const double* data, size_t words) {
  double sum = 0;
  for (size_t i = 0; i < words; i++) sum += data[i];
  return sum;
}

/** Passes with requests and replies, for two-sided transfers. */
typedef int apex_passes_t(apex_t* apex, uint64_t passes);
/** Set by libraries with two-sided transfers, else null. */
extern apex_passes_t* apex_message_passes;

#endif
