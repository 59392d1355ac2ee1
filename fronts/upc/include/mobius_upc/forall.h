/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_FORALL_H
#define MOBIUS_UPC_FORALL_H

/**
 * @file
 * What translated upc_forall loops call. Local, do not block. Thread safety: one thread of the
 * process at a time. */

#include <mobius_upc/pointer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many upc_forall loops that distribute iterations are around the code that runs. */
extern MOB_UPC_API int mob_upc_forall_depth_;

/**
 * @return the smallest q for which q × THREADS + MYTHREAD is not below `index`: of rows that are
 * dealt out one by one, the local number of this thread's first that is `index` or follows it
 */
MOB_UPC_INLINE int64_t mob_upc_first_row(int64_t index) {
  int64_t rows;
  const uint32_t rest = mob_upc_divide_by_threads(index, &rows);
  return rest > (uint32_t)mob_upc_mythread_ ? rows + 1 : rows;
}

/**
 * @return of blocks of `block` indices, dealt out one by one, the first index of this thread's
 * first that contains `index` or follows it
 */
MOB_UPC_INLINE int64_t mob_upc_first_block(int64_t index, uint32_t block) {
  int64_t rows;
  const int64_t number = index >= 0 ? index / block : -((-index + block - 1) / block);
  const int64_t rest = (int64_t)mob_upc_divide_by_threads(number, &rows);
  int64_t ahead = (int64_t)mob_upc_mythread_ - rest;
  if (ahead < 0) ahead += mob_upc_threads();
  return (number + ahead) * block;
}

/**
 * @return how far the global index of an element of this thread's block that begins with `first` is
 *         ahead of its index among this thread's own elements
 */
MOB_UPC_INLINE int64_t mob_upc_block_distance(int64_t first, uint32_t block) {
  int64_t rows;
  mob_upc_divide_by_threads(first / block, &rows);
  return first - rows * block;
}

#ifdef __cplusplus
}
#endif
#endif
