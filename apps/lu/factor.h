/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LU_FACTOR_H
#define LU_FACTOR_H

#include "kernels.h"
#include "matrix.h"

/** Seconds of one process. The rest of `all` was computing. */
typedef struct {
  double all, communication, waiting;
} times_t;

/**
 * Factors the matrix in place: L below its diagonal, U on and above it. Collective.
 * @param direct  read blocks of others in place where that is possible, instead of copies
 * @param times   out: of the calling process
 */
void factor_matrix(const matrix_t* matrix, const kernels_t* kernels, int direct, times_t* times);

#endif
