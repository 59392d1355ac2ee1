/* SPDX-License-Identifier: BSD-3-Clause */

#include "matrix.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

/* splitmix64 */
static uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double matrix_random(uint64_t seed, long row, long column) {
  const uint64_t bits = scramble(scramble(seed ^ scramble((uint64_t)row)) + (uint64_t)column);
  return (double)(bits >> 11) / (double)(UINT64_C(1) << 52) - 1.0;
}

double matrix_element(uint64_t seed, int size, int row, int column) {
  return row == column ? size : matrix_random(seed, row, column);
}

void matrix_fill(const matrix_t* matrix, uint64_t seed) {
  const layout_t* layout = matrix->layout;
  for (int i = 0; i < layout->blocks; ++i) {
    for (int j = 0; j < layout->blocks; ++j) {
      if (layout_owner(layout, i, j) != world_rank()) continue;
      double* element = matrix->own + layout_slot(layout, i, j);
      const int rows = layout_extent(layout, i), columns = layout_extent(layout, j);
      for (int column = 0; column < columns; ++column) {
        for (int row = 0; row < rows; ++row) {
          *element++ = matrix_element(seed, layout->size, i * layout->block + row,
                                      j * layout->block + column);
        }
      }
    }
  }
}

const double* matrix_block(const matrix_t* matrix, int row, int column, int direct,
                           double* buffer) {
  const layout_t* layout = matrix->layout;
  const int owner = layout_owner(layout, row, column);
  const size_t slot = layout_slot(layout, row, column);
  if (owner == world_rank()) return matrix->own + slot;
  const double* mapped = direct ? world_map(owner, slot) : NULL;
  if (mapped != NULL) return mapped;
  world_get(owner, slot, (size_t)layout_extent(layout, row) * (size_t)layout_extent(layout, column),
            buffer);
  return buffer;
}

uint64_t matrix_checksum(const matrix_t* matrix) {
  const layout_t* layout = matrix->layout;
  uint64_t sum = 0;
  for (int i = 0; i < layout->blocks; ++i) {
    for (int j = 0; j < layout->blocks; ++j) {
      if (layout_owner(layout, i, j) != world_rank()) continue;
      const double* element = matrix->own + layout_slot(layout, i, j);
      const int rows = layout_extent(layout, i), columns = layout_extent(layout, j);
      for (int n = 0; n < rows * columns; ++n) {
        const uint64_t row = (uint64_t)(i * layout->block + n % rows);
        const uint64_t column = (uint64_t)(j * layout->block + n / rows);
        uint64_t bits;
        memcpy(&bits, &element[n], sizeof bits);
        sum += scramble(bits ^ scramble(row << 32 | column));
      }
    }
  }
  return sum;
}

/* Calls `use` for every block; the caller gets a copy of those of others. */
static void for_each_block(const matrix_t* matrix,
                           void (*use)(void* state, const double* block, int row, int column,
                                       int rows, int columns),
                           void* state) {
  const layout_t* layout = matrix->layout;
  double* buffer = malloc((size_t)layout->block * (size_t)layout->block * sizeof(double));
  if (buffer == NULL) world_fail("no memory");
  for (int i = 0; i < layout->blocks; ++i) {
    for (int j = 0; j < layout->blocks; ++j) {
      const double* block = matrix_block(matrix, i, j, 0, buffer);
      world_complete();
      use(state, block, i * layout->block, j * layout->block, layout_extent(layout, i),
          layout_extent(layout, j));
    }
  }
  free(buffer);
}

/* A product of the upper or the lower factor with a vector. */
typedef struct {
  const double* x;
  double* product;
  int upper; /* with the diagonal; the lower one has ones there */
} product_t;

static void add_product(void* state, const double* block, int row, int column, int rows,
                        int columns) {
  const product_t* p = state;
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) {
      const int in_upper = column + j >= row + i;
      if (in_upper == p->upper) p->product[row + i] += block[j * rows + i] * p->x[column + j];
    }
  }
}

double matrix_residual(const matrix_t* matrix, uint64_t seed) {
  const int size = matrix->layout->size;
  double* x = malloc((size_t)size * sizeof(double));
  double* ux = calloc((size_t)size, sizeof(double));
  double* lux = malloc((size_t)size * sizeof(double));
  if (x == NULL || ux == NULL || lux == NULL) world_fail("no memory");
  for (int i = 0; i < size; ++i) x[i] = matrix_random(~seed, i, 0);
  product_t upper = {x, ux, 1};
  for_each_block(matrix, add_product, &upper);
  memcpy(lux, ux, (size_t)size * sizeof(double)); /* the ones on the diagonal of L */
  product_t lower = {ux, lux, 0};
  for_each_block(matrix, add_product, &lower);

  double largest = 0.0;
  for (int i = 0; i < size; ++i) {
    double ax = 0.0, scale = 0.0;
    for (int j = 0; j < size; ++j) {
      const double term = matrix_element(seed, size, i, j) * x[j];
      ax += term;
      scale += fabs(term);
    }
    const double residual = fabs(lux[i] - ax) / (DBL_EPSILON * size * scale);
    if (!(residual <= largest)) largest = isnan(residual) ? HUGE_VAL : residual;
  }
  free(x), free(ux), free(lux);
  return fmin(largest, DBL_MAX); /* a number that JSON has */
}

typedef struct {
  double* all;
  int size;
} whole_t;

static void copy_block(void* state, const double* block, int row, int column, int rows,
                       int columns) {
  const whole_t* whole = state;
  for (int j = 0; j < columns; ++j) {
    memcpy(whole->all + (size_t)(column + j) * (size_t)whole->size + row, block + j * rows,
           (size_t)rows * sizeof(double));
  }
}

int matrix_write(const matrix_t* matrix, const char* file) {
  const int size = matrix->layout->size;
  const size_t elements = (size_t)size * (size_t)size;
  whole_t whole = {malloc(elements * sizeof(double)), size};
  if (whole.all == NULL) world_fail("no memory for the whole matrix in one process");
  for_each_block(matrix, copy_block, &whole);
  FILE* out = fopen(file, "wb");
  int result = out == NULL ? -1 : 0;
  if (out != NULL) {
    char header[119]; /* with the 10 bytes before it a multiple of 64, less the newline */
    const int length =
        snprintf(header, sizeof header,
                 "{'descr': '<f8', 'fortran_order': True, 'shape': (%d, %d), }", size, size);
    memset(header + length, ' ', sizeof header - (size_t)length);
    header[sizeof header - 2] = '\n';
    header[sizeof header - 1] = 0;
    if (fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out) != 10 ||
        fwrite(header, 1, 118, out) != 118 ||
        fwrite(whole.all, sizeof(double), elements, out) != elements) {
      result = -1;
    }
    if (fclose(out) != 0) result = -1;
  }
  free(whole.all);
  return result;
}
