/* SPDX-License-Identifier: BSD-3-Clause */

#include "factor.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "world.h"

static const double kQuietSeconds = 3.0, kProgressSeconds = 2.0;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One factorisation. */
typedef struct {
  const matrix_t* matrix;
  const layout_t* layout;
  const kernels_t* kernels;
  int direct;
  times_t* times;
  /* The blocks of the current step that the calling process needs: column k of L by row, row k of U
   * by column, and copies of those that it cannot read in place. */
  const double** lower;
  const double** upper;
  double* lower_copies;
  double* upper_copies;
  double* diagonal_copy;
} run_t;

static int owns(const run_t* run, int i, int j) {
  return run->layout->row_of[i] == run->layout->own_row &&
         run->layout->column_of[j] == run->layout->own_column;
}

static double* own_block(const run_t* run, int i, int j) {
  return run->matrix->own + layout_slot(run->layout, i, j);
}

/* Others have finished their blocks when this returns. */
static void meet(run_t* run) {
  const double start = now();
  world_barrier();
  run->times->waiting += now() - start;
}

/* Divides the own blocks below and to the right of diagonal block k by it. */
static void divide(run_t* run, int k) {
  const layout_t* layout = run->layout;
  const int in_row = layout->row_of[k] == layout->own_row;
  const int in_column = layout->column_of[k] == layout->own_column;
  if (!in_row && !in_column) return;
  const double start = now();
  const double* diagonal = matrix_block(run->matrix, k, k, run->direct, run->diagonal_copy);
  world_complete();
  run->times->communication += now() - start;
  const int pivots = layout_extent(layout, k);
  for (int n = k + 1; n < layout->blocks; ++n) {
    const int extent = layout_extent(layout, n);
    if (owns(run, n, k)) {
      run->kernels->divide_by_upper(own_block(run, n, k), diagonal, extent, pivots);
    }
    if (owns(run, k, n)) {
      run->kernels->divide_by_lower(own_block(run, k, n), diagonal, pivots, extent);
    }
  }
}

/* Brings the blocks of step k that the own part of the rest of the matrix needs. Each comes once,
 * and all are under way together. */
static void fetch(run_t* run, int k) {
  const layout_t* layout = run->layout;
  const size_t slot = (size_t)layout->block * (size_t)layout->block;
  const double start = now();
  for (int n = k + 1; n < layout->blocks; ++n) {
    if (layout->row_of[n] == layout->own_row) {
      run->lower[n] =
          matrix_block(run->matrix, n, k, run->direct, run->lower_copies + (size_t)n * slot);
    }
    if (layout->column_of[n] == layout->own_column) {
      run->upper[n] =
          matrix_block(run->matrix, k, n, run->direct, run->upper_copies + (size_t)n * slot);
    }
  }
  world_complete();
  run->times->communication += now() - start;
}

static void update(run_t* run, int k) {
  const layout_t* layout = run->layout;
  const int pivots = layout_extent(layout, k);
  for (int i = k + 1; i < layout->blocks; ++i) {
    if (layout->row_of[i] != layout->own_row) continue;
    for (int j = k + 1; j < layout->blocks; ++j) {
      if (layout->column_of[j] != layout->own_column) continue;
      run->kernels->subtract_product(own_block(run, i, j), run->lower[i], run->upper[j],
                                     layout_extent(layout, i), layout_extent(layout, j), pivots);
    }
  }
}

/* Says now and then how much of a long run is done: after k steps, all but the cube of the rest. */
static void tell(const run_t* run, int k, double start, double* told) {
  const double time = now(), left = 1.0 - (double)k / run->layout->blocks;
  if (world_rank() != 0 || time - start < kQuietSeconds || time - *told < kProgressSeconds) return;
  fprintf(stderr, "lu: %.0f %% after %.0f s\n", 100.0 * (1.0 - left * left * left), time - start);
  *told = time;
}

static void* allocate(size_t count, size_t bytes) {
  void* memory = malloc(count * bytes);
  if (memory == NULL) world_fail("no memory");
  return memory;
}

void factor_matrix(const matrix_t* matrix, const kernels_t* kernels, int direct, times_t* times) {
  const layout_t* layout = matrix->layout;
  const size_t blocks = (size_t)layout->blocks;
  const size_t slot = (size_t)layout->block * (size_t)layout->block;
  run_t run = {matrix,
               layout,
               kernels,
               direct,
               times,
               allocate(blocks, sizeof(double*)),
               allocate(blocks, sizeof(double*)),
               allocate(blocks * slot, sizeof(double)),
               allocate(blocks * slot, sizeof(double)),
               allocate(slot, sizeof(double))};
  *times = (times_t){0.0, 0.0, 0.0};
  world_barrier();
  const double start = now();
  double told = start;
  for (int k = 0; k < layout->blocks; ++k) {
    if (owns(&run, k, k)) kernels->factor(own_block(&run, k, k), layout_extent(layout, k));
    meet(&run); /* the diagonal block is factored */
    divide(&run, k);
    meet(&run); /* row and column k are final */
    fetch(&run, k);
    update(&run, k);
    tell(&run, k, start, &told);
  }
  meet(&run);
  times->all = now() - start;
  free(run.lower), free(run.upper);
  free(run.lower_copies), free(run.upper_copies), free(run.diagonal_copy);
}
