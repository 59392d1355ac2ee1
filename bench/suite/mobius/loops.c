/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Loops of Möbius. Sizes of 8, 4, 2 and 1 bytes use the inlined calls, as in a program that knows
 * its sizes; all others use mob_put() and mob_get(), or with synchronisations that complete what is
 * under way mob_put_nbi() and mob_get_nbi().
 */

#include "../loops.h"

#include "mobius_blocks.h"

typedef uint64_t __attribute__((may_alias)) word8_t;
typedef uint32_t __attribute__((may_alias)) word4_t;
typedef uint16_t __attribute__((may_alias)) word2_t;
typedef uint8_t __attribute__((may_alias)) word1_t;

static SUITE_INLINE void* far_data(const suite_spot_t* spot) {
  return (void*)(uintptr_t)spot->far_data;
}

/* The data is complete at the peer before the signal. */
static SUITE_INLINE int tell(suite_spot_t* spot) {
  TRY(mob_put8(spot->peer, (uint64_t*)(uintptr_t)spot->far_flag, ++spot->sent));
  return mob_flush(spot->peer);
}

static SUITE_INLINE int await_flag(suite_spot_t* spot) {
  const uint64_t expected = ++spot->seen;
  uint64_t value;
  int error;
  if (spot->remark) return mob_wait_until_u8(spot->flag, MOB_GE, expected);
  do error = mob_get8(spot->own, spot->flag, &value);
  while ((int64_t)(value - expected) < 0 && error == MOB_OK);
  return error;
}

/* Everything for one width. `put_data` and `get_data` are expressions of `spot`. */
#define DEFINE_LOOPS(width, size, name, put_data, get_data)                                \
  static SUITE_INLINE int put_##width(suite_spot_t* spot) {                                \
    TRY(put_data);                                                                         \
    return mob_flush(spot->peer);                                                          \
  }                                                                                        \
  static SUITE_INLINE int get_##width(suite_spot_t* spot) { return get_data; }             \
  static SUITE_INLINE int turn_put_##width(suite_spot_t* spot) {                           \
    TRY(put_##width(spot));                                                                \
    return tell(spot);                                                                     \
  }                                                                                        \
  static SUITE_INLINE int turn_get_##width(suite_spot_t* spot) {                           \
    TRY(get_##width(spot));                                                                \
    TRY(mob_fence()); /* the peer gets what was stored here */                             \
    return tell(spot);                                                                     \
  }                                                                                        \
  SUITE_DEFINE_THERE_AND_BACK(there_and_back_put_##width, turn_put_##width, await_flag)    \
  SUITE_DEFINE_THERE_AND_BACK(there_and_back_get_##width, turn_get_##width, await_flag)    \
  SUITE_DEFINE_ONE_SIDE(one_side_put_##width, put_##width)                                 \
  SUITE_DEFINE_ONE_SIDE(one_side_get_##width, get_##width)                                 \
  SUITE_REGISTER_LOOPS(put_block_##width, "put:flush", "mob_put" name ", mob_flush", size, \
                       there_and_back_put_##width, one_side_put_##width)                   \
  SUITE_REGISTER_LOOPS(get_block_##width, "get:flush", "mob_get" name, size,               \
                       there_and_back_get_##width, one_side_get_##width)

#define DEFINE_VALUE_LOOPS(width)                                                                \
  static SUITE_INLINE int get_value##width(suite_spot_t* spot) {                                 \
    word##width##_t value;                                                                       \
    TRY(mob_get##width(spot->peer, far_data(spot), &value));                                     \
    /* Volatile: a loop of gets must store each of them, not the last one. */                    \
    *(volatile word##width##_t*)(void*)spot->data = value;                                       \
    return MOB_OK;                                                                               \
  }                                                                                              \
  DEFINE_LOOPS(                                                                                  \
      width, width, #width,                                                                      \
      mob_put##width(spot->peer, far_data(spot), *(volatile word##width##_t*)(void*)spot->data), \
      get_value##width(spot))

DEFINE_VALUE_LOOPS(8)
DEFINE_VALUE_LOOPS(4)
DEFINE_VALUE_LOOPS(2)
DEFINE_VALUE_LOOPS(1)
DEFINE_LOOPS(any, 0, "", mob_put(spot->peer, far_data(spot), spot->data, spot->bytes),
             mob_get(spot->peer, far_data(spot), spot->data, spot->bytes))

/* ---- other synchronisations, whose calls are not inlined ---- */

static SUITE_INLINE mobius_window_t* state_of(const suite_spot_t* spot) { return spot->state; }

static SUITE_INLINE int fence(const suite_spot_t* spot) {
  return mob_epoch_fence(state_of(spot)->epoch);
}

static SUITE_INLINE int fence_await(suite_spot_t* spot) {
  TRY(fence(spot));
  return fence(spot);
}

static SUITE_INLINE int one_fence_await(suite_spot_t* spot) { return fence(spot); }

static SUITE_INLINE int pscw_await(suite_spot_t* spot) {
  TRY(mob_epoch_post(state_of(spot)->epoch, &spot->peer, 1));
  return mob_epoch_wait(state_of(spot)->epoch);
}

/* Everything for one transfer, `start`, an expression of `spot`. */
#define DEFINE_SYNCS(identifier, operation, size, start)                                           \
  static SUITE_INLINE int one_fence_##identifier(suite_spot_t* spot) {                             \
    TRY(start);                                                                                    \
    return fence(spot);                                                                            \
  }                                                                                                \
  static SUITE_INLINE int fence_##identifier(suite_spot_t* spot) {                                 \
    TRY(fence(spot));                                                                              \
    return one_fence_##identifier(spot);                                                           \
  }                                                                                                \
  static SUITE_INLINE int pscw_##identifier(suite_spot_t* spot) {                                  \
    TRY(mob_epoch_start(state_of(spot)->epoch, &spot->peer, 1));                                   \
    TRY(start);                                                                                    \
    return mob_epoch_complete(state_of(spot)->epoch);                                              \
  }                                                                                                \
  static SUITE_INLINE int lock_##identifier(suite_spot_t* spot) {                                  \
    TRY(mob_access_lock_nbi(state_of(spot)->access, spot->peer, MOB_SHARED));                      \
    TRY(start);                                                                                    \
    return mob_access_unlock(state_of(spot)->access, spot->peer);                                  \
  }                                                                                                \
  static SUITE_INLINE int lock_turn_##identifier(suite_spot_t* spot) {                             \
    TRY(lock_##identifier(spot));                                                                  \
    return tell(spot);                                                                             \
  }                                                                                                \
  SUITE_DEFINE_THERE_AND_BACK(fences_##identifier, fence_##identifier, fence_await)                \
  SUITE_DEFINE_THERE_AND_BACK(one_fences_##identifier, one_fence_##identifier, one_fence_await)    \
  SUITE_DEFINE_THERE_AND_BACK(pairs_##identifier, pscw_##identifier, pscw_await)                   \
  SUITE_DEFINE_THERE_AND_BACK(locks_##identifier, lock_turn_##identifier, await_flag)              \
  SUITE_DEFINE_ONE_SIDE(lock_side_##identifier, lock_##identifier)                                 \
  SUITE_REGISTER_LOOPS(fence_block_##identifier, #operation ":fence", "mob_epoch_fence", size,     \
                       fences_##identifier, NULL)                                                  \
  SUITE_REGISTER_LOOPS(one_fence_block_##identifier, #operation ":one-fence",                      \
                       "mob_epoch_fence after", size, one_fences_##identifier, NULL)               \
  SUITE_REGISTER_LOOPS(pscw_block_##identifier, #operation ":pscw", "mob_epoch_start, complete",   \
                       size, pairs_##identifier, NULL)                                             \
  SUITE_REGISTER_LOOPS(lock_block_##identifier, #operation ":lock", "mob_access_lock_nbi, unlock", \
                       size, locks_##identifier, lock_side_##identifier)

#define DEFINE_VALUE_SYNCS(width)                                                                \
  DEFINE_SYNCS(put##width, put, width,                                                           \
               mob_put##width(spot->peer, far_data(spot), *(word##width##_t*)(void*)spot->data)) \
  DEFINE_SYNCS(get##width, get, width, get_value##width(spot))

DEFINE_VALUE_SYNCS(8)
DEFINE_VALUE_SYNCS(4)
DEFINE_SYNCS(put, put, 0, mob_put_nbi(spot->peer, far_data(spot), spot->data, spot->bytes))
DEFINE_SYNCS(get, get, 0, mob_get_nbi(spot->peer, far_data(spot), spot->data, spot->bytes))
