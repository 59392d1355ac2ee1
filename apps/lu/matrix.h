/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LU_MATRIX_H
#define LU_MATRIX_H

#include <stdint.h>

#include "layout.h"

/* The matrix, in blocks spread over the processes. */
typedef struct {
  const layout_t* layout;
  double* own; /* the blocks of the calling process */
} matrix_t;

/** A number in [-1, 1) that `seed`, `row` and `column` decide. */
double matrix_random(uint64_t seed, long row, long column);

/**
 * Element of the matrix to be factored: random, with a diagonal that outweighs the rest of its row,
 * so that no pivoting is needed.
 */
double matrix_element(uint64_t seed, int size, int row, int column);

/** Fills the blocks of the calling process. */
void matrix_fill(const matrix_t* matrix, uint64_t seed);

/** @return the block, for loads: directly if `direct` and possible, else copied into `buffer` */
const double* matrix_block(const matrix_t* matrix, int row, int column, int direct, double* buffer);

/** A number that depends on every bit of the own blocks and on no placement: add those of all. */
uint64_t matrix_checksum(const matrix_t* matrix);

/**
 * The error of the factors: |L·(U·x) - A·x| over what rounding may make of it, the largest of all
 * rows, for one random x. Below 1 for a right result. One process calls it; it reads all blocks.
 */
double matrix_residual(const matrix_t* matrix, uint64_t seed);

/**
 * Writes the factors, L below the diagonal and U on and above it, as a NumPy array.
 * @return 0, or -1 with errno set
 */
int matrix_write(const matrix_t* matrix, const char* file);

#endif
