/* SPDX-License-Identifier: BSD-3-Clause */

/* Derived datatypes on both sides: what arrives is what MPI_Pack() and MPI_Unpack() make of them.
 */

#include "check.h"

enum { kBytes = 1 << 16, kTypes = 24 };

static MPI_Datatype types[kTypes];
static int made;

static void add(MPI_Datatype type) {
  MPI(MPI_Type_commit(&type));
  types[made++] = type;
}

/* All of ints, with gaps, negative strides and bounds, no blocks at all, and of each other. */
static void make_types(void) {
  MPI_Datatype type, other;
  MPI(MPI_Type_contiguous(5, MPI_INT, &type));
  add(type);
  MPI(MPI_Type_vector(4, 3, 7, MPI_INT, &type));
  add(type);
  MPI(MPI_Type_vector(4, 2, -5, MPI_INT, &type));
  add(type);
  MPI(MPI_Type_create_hvector(3, 2, 44, MPI_INT, &type));
  add(type);
  const int lengths[] = {2, 0, 3, 1}, places[] = {9, 4, 0, 20};
  MPI(MPI_Type_indexed(4, lengths, places, MPI_INT, &type));
  add(type);
  const MPI_Aint bytes[] = {40, 100, 0, 16};
  MPI(MPI_Type_create_hindexed(4, lengths, bytes, MPI_INT, &type));
  add(type);
  MPI(MPI_Type_create_indexed_block(4, 2, places, MPI_INT, &type));
  add(type);
  MPI(MPI_Type_create_hindexed_block(4, 1, bytes, MPI_INT, &type));
  add(type);
  const int sizes[] = {6, 5, 7}, part[] = {2, 3, 4}, from[] = {1, 2, 3};
  MPI(MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_C, MPI_INT, &type));
  add(type);
  MPI(MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_FORTRAN, MPI_INT, &type));
  add(type);
  const int block_cyclic[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
  const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2, MPI_DISTRIBUTE_DFLT_DARG};
  const int grid[] = {2, 2, 1};
  for (int rank = 0; rank < 4; ++rank) {
    MPI(MPI_Type_create_darray(4, rank, 3, sizes, block_cyclic, arguments, grid,
                               rank % 2 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_INT, &type));
    add(type);
  }
  MPI(MPI_Type_create_resized(MPI_INT, 0, 12, &other));
  MPI(MPI_Type_contiguous(3, other, &type));
  add(type);
  MPI(MPI_Type_create_resized(MPI_INT, -4, 8, &other));
  MPI(MPI_Type_vector(2, 3, 4, other, &type));
  add(type);
  MPI(MPI_Type_dup(types[1], &type));
  add(type);
  const MPI_Datatype parts[] = {MPI_INT, types[1], types[8]};
  const int counts[] = {2, 1, 2};
  const MPI_Aint offsets[] = {0, 16, 1024};
  MPI(MPI_Type_create_struct(3, counts, offsets, parts, &type));
  add(type);
  MPI(MPI_Type_vector(2, 2, 3, types[4], &type));
  add(type);
  MPI(MPI_Type_contiguous(2, types[17], &type));
  add(type);
}

/* The address from which elements of the type stay in the memory. */
static MPI_Aint start_of(MPI_Datatype type) {
  MPI_Aint low, extent, true_low, true_extent;
  MPI(MPI_Type_get_extent(type, &low, &extent));
  MPI(MPI_Type_get_true_extent(type, &true_low, &true_extent));
  return true_low < 0 ? (-true_low + 63) / 64 * 64 : 0;
}

static void fill(char* memory, int seed) {
  int* words = (int*)memory;
  for (size_t i = 0; i < kBytes / sizeof *words; ++i) words[i] = (int)(i * 2654435761u) ^ seed;
}

static char *mine, *here, *expected, *packed;

static void try_pair(MPI_Win win, MPI_Datatype origin, int origin_count, MPI_Datatype target,
                     int target_count, int right) {
  const int left = (check_rank + check_size - 1) % check_size;
  const MPI_Aint from = start_of(origin), to = start_of(target);
  int bytes = 0;
  /* Put: the left neighbour's origin memory as this target type unpacks it. */
  fill(mine, 1);
  fill(expected, 1);
  fill(here, 100 + left);
  MPI(MPI_Pack(here + from, origin_count, origin, packed, kBytes, &bytes, MPI_COMM_WORLD));
  bytes = 0;
  MPI(MPI_Unpack(packed, kBytes, &bytes, expected + to, target_count, target, MPI_COMM_WORLD));
  fill(here, 100 + check_rank);
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(here + from, origin_count, origin, right, to, target_count, target, win));
  MPI(MPI_Win_fence(0, win));
  CHECK(memcmp(mine, expected, kBytes) == 0);
  /* Get. */
  fill(mine, 200 + check_rank);
  fill(here, 3);
  fill(expected, 200 + right);
  bytes = 0;
  MPI(MPI_Pack(expected + to, target_count, target, packed, kBytes, &bytes, MPI_COMM_WORLD));
  fill(expected, 3);
  bytes = 0;
  MPI(MPI_Unpack(packed, kBytes, &bytes, expected + from, origin_count, origin, MPI_COMM_WORLD));
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Get(here + from, origin_count, origin, right, to, target_count, target, win));
  MPI(MPI_Win_fence(0, win));
  CHECK(memcmp(here, expected, kBytes) == 0);
  /* Accumulate: replace, as a put; then sum of what is there twice. */
  fill(mine, 1);
  fill(expected, 1);
  fill(here, 100 + left);
  bytes = 0;
  MPI(MPI_Pack(here + from, origin_count, origin, packed, kBytes, &bytes, MPI_COMM_WORLD));
  bytes = 0;
  MPI(MPI_Unpack(packed, kBytes, &bytes, expected + to, target_count, target, MPI_COMM_WORLD));
  fill(here, 100 + check_rank);
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Accumulate(here + from, origin_count, origin, right, to, target_count, target,
                     MPI_REPLACE, win));
  MPI(MPI_Win_fence(0, win));
  CHECK(memcmp(mine, expected, kBytes) == 0);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  make_types();
  MPI_Win win;
  here = malloc(kBytes);
  expected = malloc(kBytes);
  packed = malloc(kBytes);
  const int right = (check_rank + 1) % check_size;
  for (int kind = 0; kind < 2; ++kind) {
    if (kind == 0) {
      MPI(MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    } else {
      mine = malloc(kBytes);
      MPI(MPI_Win_create(mine, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    for (int i = 0; i < made; ++i) {
      int ints;
      MPI(MPI_Type_size(types[i], &ints));
      ints /= (int)sizeof(int);
      for (int count = 1; count < 4; count += 2) {
        try_pair(win, MPI_INT, count * ints, types[i], count, right);
        try_pair(win, types[i], count, MPI_INT, count * ints, right);
        try_pair(win, types[i], count, types[i], count, right);
      }
      for (int j = 0; j < made; ++j) {
        int others;
        MPI(MPI_Type_size(types[j], &others));
        others /= (int)sizeof(int);
        if (ints * others > 400) continue;
        try_pair(win, types[i], others, types[j], ints, right);
      }
    }
    MPI(MPI_Win_free(&win));
    if (kind == 1) free(mine);
  }
  /* A type is described anew after another one has its handle. */
  for (int i = 0; i < made; ++i) MPI(MPI_Type_free(&types[i]));
  made = 0;
  MPI(MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  for (int i = 1; i < 40; ++i) {
    MPI_Datatype type;
    MPI(MPI_Type_vector(3, 1, i, MPI_INT, &type));
    MPI(MPI_Type_commit(&type));
    try_pair(win, type, 2, MPI_INT, 6, right);
    MPI(MPI_Type_free(&type));
  }
  MPI(MPI_Win_free(&win));
  return check_end("datatypes");
}
