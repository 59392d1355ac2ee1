/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DETAIL_ATOMIC_INLINE_H
#define MOBIUS_DETAIL_ATOMIC_INLINE_H

/* The inlined paths of atomic.h. Not an interface: programs call nothing here. An atomic
 * instruction on an unaligned word is very slow or faults, so unaligned words take the out-of-line
 * call, as every other uncommon case does. */

#include <mobius/atomic.h>

typedef enum mob_rmw_ {
  MOB_RMW_ADD_,
  MOB_RMW_AND_,
  MOB_RMW_OR_,
  MOB_RMW_XOR_,
  MOB_RMW_SWAP_,
  MOB_RMW_COMPARE_SWAP_
} mob_rmw_t_;

MOB_API mob_status_t mob_rmw_out_of_line_(mob_rmw_t_ what, mob_rank_t rank, void* remote,
                                          uint64_t value, uint64_t expected, void* old,
                                          unsigned log2_bytes);

#define MOB_DEFINE_FETCH_(name, suffix, type, log2_bytes, builtin, what)                          \
  MOB_INLINE mob_status_t mob_##name##suffix(mob_rank_t rank, void* remote, type value,           \
                                             type* old) {                                         \
    if (MOB_LIKELY(old != NULL) && MOB_LIKELY(((uintptr_t)remote & (sizeof(type) - 1)) == 0) &&   \
        mob_is_direct_(rank, remote, log2_bytes, MOB_WORD_ENTRIES_)) {                            \
      *old = builtin((mob_value##suffix##_t_*)remote, value, __ATOMIC_SEQ_CST);                   \
      return MOB_OK;                                                                              \
    }                                                                                             \
    /* A local variable: `old` itself would then live in memory, and be written there every time. \
     */                                                                                           \
    type found = 0;                                                                               \
    mob_status_t status =                                                                         \
        mob_rmw_out_of_line_(what, rank, remote, value, 0, old ? &found : 0, log2_bytes);         \
    if (status == MOB_OK) *old = found;                                                           \
    return status;                                                                                \
  }

#define MOB_DEFINE_RMW_(suffix, type, log2_bytes)                                                \
  MOB_DEFINE_FETCH_(fetch_add, suffix, type, log2_bytes, __atomic_fetch_add, MOB_RMW_ADD_)       \
  MOB_DEFINE_FETCH_(fetch_and, suffix, type, log2_bytes, __atomic_fetch_and, MOB_RMW_AND_)       \
  MOB_DEFINE_FETCH_(fetch_or, suffix, type, log2_bytes, __atomic_fetch_or, MOB_RMW_OR_)          \
  MOB_DEFINE_FETCH_(fetch_xor, suffix, type, log2_bytes, __atomic_fetch_xor, MOB_RMW_XOR_)       \
  MOB_DEFINE_FETCH_(swap, suffix, type, log2_bytes, __atomic_exchange_n, MOB_RMW_SWAP_)          \
  MOB_INLINE mob_status_t mob_compare_swap##suffix(mob_rank_t rank, void* remote, type expected, \
                                                   type desired, type* old) {                    \
    if (MOB_LIKELY(old != NULL) && MOB_LIKELY(((uintptr_t)remote & (sizeof(type) - 1)) == 0) &&  \
        mob_is_direct_(rank, remote, log2_bytes, MOB_WORD_ENTRIES_)) {                           \
      type held = expected;                                                                      \
      __atomic_compare_exchange_n((mob_value##suffix##_t_*)remote, &held, desired, 0,            \
                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
      *old = held;                                                                               \
      return MOB_OK;                                                                             \
    }                                                                                            \
    type found = 0;                                                                              \
    mob_status_t status = mob_rmw_out_of_line_(MOB_RMW_COMPARE_SWAP_, rank, remote, desired,     \
                                               expected, old ? &found : 0, log2_bytes);          \
    if (status == MOB_OK) *old = found;                                                          \
    return status;                                                                               \
  }

MOB_DEFINE_RMW_(8, uint64_t, 3)
MOB_DEFINE_RMW_(4, uint32_t, 2)

#undef MOB_DEFINE_RMW_
#undef MOB_DEFINE_FETCH_

#endif
