/* SPDX-License-Identifier: BSD-3-Clause */

/* Datatypes: layouts of bytes. Options: block and stride in bytes. A library makes its own object
 * from the name (mpi/types.c) or from the runs. */

#include <stdlib.h>
#include <string.h>

#include "../suite.h"

static const char* contiguous(size_t bytes, size_t element, suite_type_t* type) {
  if (bytes % element != 0) return "the size is no multiple of the element";
  type->runs = malloc(sizeof *type->runs);
  if (type->runs == NULL) abort();
  type->runs[0].offset = 0;
  type->runs[0].bytes = bytes;
  type->run_count = 1;
  type->bytes = type->extent = bytes;
  type->element_bytes = element;
  type->block_bytes = type->stride_bytes = bytes;
  return NULL;
}

static const char* byte_type(const suite_cell_t* cell, size_t bytes, suite_type_t* type) {
  (void)cell;
  return contiguous(bytes, 1, type);
}

static const char* int_type(const suite_cell_t* cell, size_t bytes, suite_type_t* type) {
  (void)cell;
  return contiguous(bytes, 4, type);
}

static const char* double_type(const suite_cell_t* cell, size_t bytes, suite_type_t* type) {
  (void)cell;
  type->is_double = 1;
  return contiguous(bytes, 8, type);
}

static size_t regular(size_t index, size_t stride, size_t block) {
  (void)block;
  return index * stride;
}

/* Runs of `block` bytes; place() gives the beginning of run i. */
static const char* runs(const suite_cell_t* cell, size_t bytes, suite_type_t* type,
                        size_t (*place)(size_t index, size_t stride, size_t block)) {
  size_t block = suite_option_number(cell, "block", 8);
  size_t stride = suite_option_number(cell, "stride", 2 * block);
  if (block == 0 || block % 4 != 0 || stride % 4 != 0 || stride < block)
    return "block and stride are multiples of 4 bytes, and a stride is no less than a block";
  if (bytes % block != 0) return "the size is no multiple of the block";
  size_t count = bytes / block;
  type->runs = malloc(count * sizeof *type->runs);
  if (type->runs == NULL) abort();
  for (size_t i = 0; i < count; i++) {
    type->runs[i].offset = place(i, stride, block);
    type->runs[i].bytes = block;
  }
  type->run_count = count;
  type->bytes = bytes;
  type->extent = type->runs[count - 1].offset + block;
  type->element_bytes = 4;
  type->block_bytes = block;
  type->stride_bytes = stride;
  type->is_regular = place == regular;
  return NULL;
}

/* Every second run begins later by up to half the gap, so no stride describes the layout. */
static size_t irregular(size_t index, size_t stride, size_t block) {
  size_t gap = (stride - block) / 2 / 4 * 4;
  return index * stride + (index % 2 ? gap : 0);
}

static const char* vector_type(const suite_cell_t* cell, size_t bytes, suite_type_t* type) {
  return runs(cell, bytes, type, regular);
}

static const char* indexed_type(const suite_cell_t* cell, size_t bytes, suite_type_t* type) {
  return runs(cell, bytes, type, irregular);
}

/* A square of doubles from the middle of a wider matrix, as programs on Global Arrays transfer. */
static const char* patch_type(const suite_cell_t* cell, size_t bytes, suite_type_t* type) {
  enum { kColumns = 1000 };
  size_t side = 1, width = suite_option_number(cell, "columns", kColumns);
  while (8 * side * side < bytes) side++;
  if (8 * side * side != bytes) return "a patch has 8, 32, 72, … bytes: doubles of a square";
  if (side > width) return "the patch is wider than its matrix";
  type->runs = malloc(side * sizeof *type->runs);
  if (type->runs == NULL) abort();
  for (size_t row = 0; row < side; row++) {
    type->runs[row].offset = row * 8 * width;
    type->runs[row].bytes = 8 * side;
  }
  type->run_count = side;
  type->bytes = bytes;
  type->extent = type->runs[side - 1].offset + 8 * side;
  type->element_bytes = 8;
  type->is_double = 1;
  type->is_regular = 1;
  type->block_bytes = 8 * side;
  type->stride_bytes = 8 * width;
  return NULL;
}

static suite_type_block_t byte_block = {{SUITE_TYPE, "byte", "bytes in a row", NULL}, byte_type};
static suite_type_block_t int_block = {{SUITE_TYPE, "int", "integers in a row", NULL}, int_type};
static suite_type_block_t double_block = {{SUITE_TYPE, "double", "doubles in a row", NULL},
                                          double_type};
static suite_type_block_t contiguous_block = {
    {SUITE_TYPE, "contiguous", "a derived type of integers in a row", NULL}, int_type};
static suite_type_block_t vector_block = {{SUITE_TYPE, "vector", "blocks at a stride", NULL},
                                          vector_type};
static suite_type_block_t indexed_block = {{SUITE_TYPE, "indexed", "blocks at listed places", NULL},
                                           indexed_type};
static suite_type_block_t struct_block = {
    {SUITE_TYPE, "struct", "blocks at listed places, each with a type of its own", NULL},
    indexed_type};
static suite_type_block_t subarray_block = {
    {SUITE_TYPE, "subarray", "part of each row of a matrix", NULL}, vector_type};
static suite_type_block_t patch_block = {
    {SUITE_TYPE, "patch", "a square of doubles in a matrix of columns=1000", NULL}, patch_type};
SUITE_REGISTER(byte_block)
SUITE_REGISTER(int_block)
SUITE_REGISTER(double_block)
SUITE_REGISTER(contiguous_block)
SUITE_REGISTER(vector_block)
SUITE_REGISTER(indexed_block)
SUITE_REGISTER(struct_block)
SUITE_REGISTER(subarray_block)
SUITE_REGISTER(patch_block)
