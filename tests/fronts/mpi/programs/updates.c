/* SPDX-License-Identifier: BSD-3-Clause */

/* Accumulates and their kin: every predefined type with every operation that it has, against
 * MPI_Reduce_local(); atomicity between processes; order of those of one process. */

#include <float.h>
#include <stdint.h>

#include "check.h"

static char* mine;
static MPI_Win win;
static int right;

enum { kElements = 7, kMost = 32 };

/* Small values, so that every type holds them; the bytes of pairs' gaps stay 0. */
static void set(MPI_Datatype type, char* at, int value) {
#define SET(mpi, c)           \
  if (type == (mpi)) {        \
    c v = (c)value;           \
    memcpy(at, &v, sizeof v); \
    return;                   \
  }
  SET(MPI_INT8_T, int8_t)
  SET(MPI_UINT8_T, uint8_t)
  SET(MPI_INT16_T, int16_t)
  SET(MPI_UINT16_T, uint16_t)
  SET(MPI_INT32_T, int32_t)
  SET(MPI_UINT32_T, uint32_t)
  SET(MPI_INT64_T, int64_t)
  SET(MPI_UINT64_T, uint64_t)
  SET(MPI_CHAR, char)
  SET(MPI_SIGNED_CHAR, signed char)
  SET(MPI_UNSIGNED_CHAR, unsigned char)
  SET(MPI_SHORT, short)
  SET(MPI_INT, int)
  SET(MPI_UNSIGNED, unsigned)
  SET(MPI_LONG, long)
  SET(MPI_UNSIGNED_LONG, unsigned long)
  SET(MPI_LONG_LONG, long long)
  SET(MPI_UNSIGNED_LONG_LONG, unsigned long long)
  SET(MPI_AINT, MPI_Aint)
  SET(MPI_OFFSET, MPI_Offset)
  SET(MPI_COUNT, MPI_Count)
  SET(MPI_BYTE, unsigned char)
  SET(MPI_C_BOOL, _Bool)
  SET(MPI_WCHAR, wchar_t)
  SET(MPI_FLOAT, float)
  SET(MPI_DOUBLE, double)
  SET(MPI_C_FLOAT_COMPLEX, float _Complex)
  SET(MPI_C_DOUBLE_COMPLEX, double _Complex)
#undef SET
  if (type == MPI_LONG_DOUBLE) {
    const long double v = value;
    memcpy(at, &v, LDBL_MANT_DIG == 64 ? 10 : sizeof v); /* without its padding */
    return;
  }
#define PAIR(mpi, c)          \
  if (type == (mpi)) {        \
    struct {                  \
      c value;                \
      int index;              \
    } v;                      \
    memset(&v, 0, sizeof v);  \
    v.value = (c)(value / 2); \
    v.index = value;          \
    memcpy(at, &v, sizeof v); \
    return;                   \
  }
  PAIR(MPI_2INT, int)
  PAIR(MPI_FLOAT_INT, float)
  PAIR(MPI_DOUBLE_INT, double)
  PAIR(MPI_LONG_INT, long)
  PAIR(MPI_SHORT_INT, short)
#undef PAIR
  CHECK(!"an unknown type");
}

static void fill(MPI_Datatype type, MPI_Aint extent, char* at, int seed) {
  memset(at, 0, kElements * (size_t)extent);
  for (int i = 0; i < kElements; ++i) set(type, at + i * extent, (seed * 5 + i * 3) % 11);
}

static void try_op(MPI_Datatype type, MPI_Op op) {
  MPI_Aint low, extent;
  MPI(MPI_Type_get_extent(type, &low, &extent));
  const size_t bytes = kElements * (size_t)extent;
  char here[kElements * kMost], expected[kElements * kMost], old[kElements * kMost],
      before[kElements * kMost];
  fill(type, extent, here, 1);
  fill(type, extent, before, 2);
  memcpy(expected, before, bytes);
  if (op == MPI_REPLACE) {
    memcpy(expected, here, bytes);
  } else if (op != MPI_NO_OP) {
    MPI(MPI_Reduce_local(here, expected, kElements, type, op));
  }
  /* At an address that suits the type, and at one that does not. */
  for (int shift = 0; shift < 2; ++shift) {
    const MPI_Aint at = 64 + shift;
    memcpy(mine + at, before, bytes);
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Accumulate(here, kElements, type, right, at, kElements, type, op, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(memcmp(mine + at, expected, bytes) == 0);
    memcpy(mine + at, before, bytes);
    memset(old, 0, bytes);
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Get_accumulate(here, kElements, type, old, kElements, type, right, at, kElements, type,
                           op, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(memcmp(mine + at, expected, bytes) == 0);
    CHECK(memcmp(old, before, bytes) == 0);
    memcpy(mine + at, before, bytes);
    memset(old, 0, bytes);
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Fetch_and_op(here, old, type, right, at, op, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(memcmp(mine + at, expected, (size_t)extent) == 0);
    CHECK(memcmp(mine + at + extent, before + extent, bytes - (size_t)extent) == 0);
    CHECK(memcmp(old, before, (size_t)extent) == 0);
  }
}

static void try_types(void) {
  const MPI_Datatype integers[] = {MPI_INT8_T,
                                   MPI_UINT8_T,
                                   MPI_INT16_T,
                                   MPI_UINT16_T,
                                   MPI_INT32_T,
                                   MPI_UINT32_T,
                                   MPI_INT64_T,
                                   MPI_UINT64_T,
                                   MPI_SIGNED_CHAR,
                                   MPI_UNSIGNED_CHAR,
                                   MPI_SHORT,
                                   MPI_INT,
                                   MPI_UNSIGNED,
                                   MPI_LONG,
                                   MPI_UNSIGNED_LONG,
                                   MPI_LONG_LONG,
                                   MPI_UNSIGNED_LONG_LONG,
                                   MPI_AINT,
                                   MPI_OFFSET,
                                   MPI_COUNT};
  const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE};
  const MPI_Datatype complexes[] = {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX};
  const MPI_Datatype pairs[] = {MPI_2INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
                                MPI_SHORT_INT};
  const MPI_Datatype others[] = {MPI_BYTE, MPI_C_BOOL, MPI_CHAR, MPI_WCHAR};
  const MPI_Op arithmetic[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  const MPI_Op logical[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
  const MPI_Op bits[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
#define EACH(list, i) for (size_t i = 0; i < sizeof(list) / sizeof *(list); ++i)
  EACH(integers, i) {
    EACH(arithmetic, k) try_op(integers[i], arithmetic[k]);
    EACH(logical, k) try_op(integers[i], logical[k]);
    EACH(bits, k) try_op(integers[i], bits[k]);
  }
  EACH(reals, i) EACH(arithmetic, k) try_op(reals[i], arithmetic[k]);
  EACH(complexes, i) for (int k = 0; k < 2; ++k) try_op(complexes[i], arithmetic[k]);
  EACH(pairs, i) {
    try_op(pairs[i], MPI_MINLOC);
    try_op(pairs[i], MPI_MAXLOC);
  }
  EACH(bits, k) try_op(MPI_BYTE, bits[k]);
  EACH(logical, k) try_op(MPI_C_BOOL, logical[k]);
  const MPI_Op anywhere[] = {MPI_REPLACE, MPI_NO_OP};
  EACH(anywhere, k) {
    EACH(integers, i) try_op(integers[i], anywhere[k]);
    EACH(reals, i) try_op(reals[i], anywhere[k]);
    EACH(complexes, i) try_op(complexes[i], anywhere[k]);
    EACH(pairs, i) try_op(pairs[i], anywhere[k]);
    EACH(others, i) try_op(others[i], anywhere[k]);
  }
}

/* Every process counts in the same words, of every size, in every way. */
static void try_atomicity(void) {
  enum { kTimes = 300 };
  int64_t one = 1, old;
  memset(mine, 0, 256);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Win_lock_all(0, win));
  for (int i = 0; i < kTimes; ++i) {
    MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win));
    MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, MPI_SUM, win));
    const long double real = 1;
    MPI(MPI_Accumulate(&real, 1, MPI_LONG_DOUBLE, 0, 16, 1, MPI_LONG_DOUBLE, MPI_SUM, win));
    /* One byte and one word of two bytes, next to each other. */
    unsigned char seen = 0, next, found;
    MPI(MPI_Fetch_and_op(NULL, &seen, MPI_UINT8_T, 0, 33, MPI_NO_OP, win));
    MPI(MPI_Win_flush(0, win));
    for (;; seen = found) {
      next = (unsigned char)(seen + 1);
      MPI(MPI_Compare_and_swap(&next, &seen, &found, MPI_UINT8_T, 0, 33, win));
      MPI(MPI_Win_flush(0, win));
      if (found == seen) break;
    }
    uint16_t short_seen = 0, short_next, short_found;
    for (;; short_seen = short_found) {
      short_next = (uint16_t)(short_seen + 1);
      MPI(MPI_Compare_and_swap(&short_next, &short_seen, &short_found, MPI_UINT16_T, 0, 34, win));
      MPI(MPI_Win_flush(0, win));
      if (short_found == short_seen) break;
    }
    const double values[3] = {1, 2, 3};
    MPI(MPI_Accumulate(values, 3, MPI_DOUBLE, 0, 40, 3, MPI_DOUBLE, MPI_SUM, win));
  }
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (check_rank == 0) {
    const int64_t all = (int64_t)kTimes * check_size;
    int64_t words[2];
    long double real;
    double values[3];
    uint16_t half;
    memcpy(words, mine, sizeof words);
    memcpy(&real, mine + 16, sizeof real);
    memcpy(&half, mine + 34, sizeof half);
    memcpy(values, mine + 40, sizeof values);
    CHECK(words[0] == all && words[1] == all);
    CHECK(real == (long double)all);
    CHECK((unsigned char)mine[33] == (unsigned char)all);
    CHECK(half == (uint16_t)all);
    for (int i = 0; i < 3; ++i) CHECK(values[i] == (double)((i + 1) * all));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* A window of one byte, or two, wherever they lie in their word. */
static void try_small(void) {
  for (int at = 0; at < 8; ++at) {
    unsigned char bytes[8] = {0}, one = 1, zero = 0, old = 9;
    uint16_t shorts[4] = {0}, short_one = 1, short_zero = 0, short_old = 9;
    MPI_Win byte_win, short_win;
    MPI(MPI_Win_create(&bytes[at], 1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &byte_win));
    MPI(MPI_Win_create(&shorts[at / 2], 2, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &short_win));
    MPI(MPI_Win_fence(0, byte_win));
    MPI(MPI_Compare_and_swap(&one, &zero, &old, MPI_UINT8_T, right, 0, byte_win));
    MPI(MPI_Win_fence(0, byte_win));
    MPI(MPI_Win_fence(0, short_win));
    MPI(MPI_Compare_and_swap(&short_one, &short_zero, &short_old, MPI_UINT16_T, right, 0,
                             short_win));
    MPI(MPI_Win_fence(0, short_win));
    CHECK(old == 0 && short_old == 0);
    for (int i = 0; i < 8; ++i) CHECK(*(volatile unsigned char*)&bytes[i] == (i == at ? 1 : 0));
    for (int i = 0; i < 4; ++i) CHECK(shorts[i] == (i == at / 2 ? 1 : 0));
    MPI(MPI_Win_free(&byte_win));
    MPI(MPI_Win_free(&short_win));
  }
}

/* Without a flush between them: a sum, a replacement, a fetch, and a sum again. */
static void try_order(void) {
  MPI(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 200; ++i) {
    const int64_t start = i, add = 5;
    int64_t old = -1;
    const MPI_Aint at = 8 * check_rank;
    MPI(MPI_Accumulate(&add, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, win));
    MPI(MPI_Accumulate(&start, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_REPLACE, win));
    MPI(MPI_Accumulate(&add, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, win));
    MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T,
                           MPI_NO_OP, win));
    MPI(MPI_Accumulate(&add, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, win));
    MPI(MPI_Win_flush(0, win));
    CHECK(old == start + 5);
    MPI(MPI_Fetch_and_op(NULL, &old, MPI_INT64_T, 0, at, MPI_NO_OP, win));
    MPI(MPI_Win_flush(0, win));
    CHECK(old == start + 10);
  }
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  right = (check_rank + 1) % check_size;
  try_small();
  _Alignas(16) char on_stack[4096];
  for (int kind = 0; kind < 3; ++kind) {
    if (kind == 0) {
      MPI(MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    } else {
      mine = kind == 1 ? malloc(4096) : on_stack;
      MPI(MPI_Win_create(mine, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    try_types();
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    try_atomicity();
    try_order();
    MPI(MPI_Win_free(&win));
    if (kind == 1) free(mine);
  }
  return check_end("updates");
}
