/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Loops of OpenSHMEM. Sizes of 8 and 4 bytes use shmem_p and shmem_g, as in a program that knows
 * its sizes; all others use shmem_putmem and shmem_getmem.
 */

#include "../loops.h"

#include "shmem_blocks.h"

typedef uint64_t __attribute__((may_alias)) word64_t;
typedef uint32_t __attribute__((may_alias)) word32_t;

static SUITE_INLINE void* far_data(const suite_spot_t* spot) {
  return (void*)(uintptr_t)spot->far_data;
}

/* The data is complete at the peer before the signal. */
static SUITE_INLINE int signal_peer(suite_spot_t* spot) {
  shmem_uint64_p((uint64_t*)(uintptr_t)spot->far_flag, ++spot->sent, spot->peer);
  shmem_quiet();
  return SUITE_SHMEM_OK;
}

static SUITE_INLINE int await_flag(suite_spot_t* spot) {
  /* Larger than expected if the peer has already sent its next signal. */
  shmem_uint64_wait_until((uint64_t*)(uintptr_t)spot->flag, SHMEM_CMP_GE, ++spot->seen);
  return SUITE_SHMEM_OK;
}

/* Everything for one width. `put_data` and `get_data` are statements about `spot`. */
#define DEFINE_LOOPS(width, size, put_call, put_data, get_call, get_data)                          \
  static SUITE_INLINE int put_##width(suite_spot_t* spot) {                                        \
    put_data;                                                                                      \
    shmem_quiet();                                                                                 \
    return SUITE_SHMEM_OK;                                                                         \
  }                                                                                                \
  static SUITE_INLINE int get_##width(suite_spot_t* spot) {                                        \
    get_data;                                                                                      \
    return SUITE_SHMEM_OK;                                                                         \
  }                                                                                                \
  static SUITE_INLINE int turn_put_##width(suite_spot_t* spot) {                                   \
    TRY(put_##width(spot));                                                                        \
    return signal_peer(spot);                                                                      \
  }                                                                                                \
  static SUITE_INLINE int turn_get_##width(suite_spot_t* spot) {                                   \
    TRY(get_##width(spot));                                                                        \
    shmem_fence(); /* the peer gets what was stored here */                                        \
    return signal_peer(spot);                                                                      \
  }                                                                                                \
  SUITE_DEFINE_THERE_AND_BACK(there_and_back_put_##width, turn_put_##width, await_flag)            \
  SUITE_DEFINE_THERE_AND_BACK(there_and_back_get_##width, turn_get_##width, await_flag)            \
  SUITE_DEFINE_ONE_SIDE(one_side_put_##width, put_##width)                                         \
  SUITE_DEFINE_ONE_SIDE(one_side_get_##width, get_##width)                                         \
  SUITE_REGISTER_LOOPS(put_block_##width, "put:flush", put_call ", shmem_quiet", size,             \
                       there_and_back_put_##width, one_side_put_##width)                           \
  SUITE_REGISTER_LOOPS(get_block_##width, "get:flush", get_call, size, there_and_back_get_##width, \
                       one_side_get_##width)

/* Volatile: a loop of gets must store each of them, not the last one. */
#define DEFINE_VALUE_LOOPS(width, size)                                                          \
  DEFINE_LOOPS(width, size, "shmem_p",                                                           \
               shmem_uint##width##_p(far_data(spot),                                             \
                                     *(volatile word##width##_t*)(void*)spot->data, spot->peer), \
               "shmem_g",                                                                        \
               *(volatile word##width##_t*)(void*)spot->data =                                   \
                   shmem_uint##width##_g(far_data(spot), spot->peer))

DEFINE_VALUE_LOOPS(64, 8)
DEFINE_VALUE_LOOPS(32, 4)
DEFINE_LOOPS(any, 0, "shmem_putmem",
             shmem_putmem(far_data(spot), spot->data, spot->bytes, spot->peer), "shmem_getmem",
             shmem_getmem(spot->data, far_data(spot), spot->bytes, spot->peer))
