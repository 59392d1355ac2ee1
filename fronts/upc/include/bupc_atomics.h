/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BUPC_ATOMICS_H
#define BUPC_ATOMICS_H

/**
 * @file
 * Atomic updates without a domain, as Berkeley UPC has them. For each type there are
 *
 *     T bupc_atomicX_read_MODE(shared void* p)          void bupc_atomicX_set_MODE(p, T value)
 *     T bupc_atomicX_swap_MODE(p, T value)              T bupc_atomicX_cswap_MODE(p, T old, T new)
 *     T bupc_atomicX_mswap_MODE(p, T mask, T value)     T bupc_atomicX_fetchadd_MODE(p, T value)
 *     T bupc_atomicX_fetchand_MODE(p, T value)          … fetchor, fetchxor
 *     T bupc_atomicX_fetchnot_MODE(p)
 *
 * X is one of I, UI, L, UL, I64, U64, I32, U32; F and D (float, double) have read, set, swap and
 * cswap. MODE is relaxed or strict; with private, `p` is a private pointer. Each but `set` returns
 * the former value. */

#include <upc_atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOB_UPC_ATOMIC_WORDS_(suffix, mode, T, P)                       \
  MOB_UPC_API T bupc_atomic##suffix##_read_##mode(P target);            \
  MOB_UPC_API void bupc_atomic##suffix##_set_##mode(P target, T value); \
  MOB_UPC_API T bupc_atomic##suffix##_swap_##mode(P target, T value);   \
  MOB_UPC_API T bupc_atomic##suffix##_cswap_##mode(P target, T old_value, T new_value);
#define MOB_UPC_ATOMIC_NUMBERS_(suffix, mode, T, P)                            \
  MOB_UPC_ATOMIC_WORDS_(suffix, mode, T, P)                                    \
  MOB_UPC_API T bupc_atomic##suffix##_mswap_##mode(P target, T mask, T value); \
  MOB_UPC_API T bupc_atomic##suffix##_fetchadd_##mode(P target, T value);      \
  MOB_UPC_API T bupc_atomic##suffix##_fetchand_##mode(P target, T value);      \
  MOB_UPC_API T bupc_atomic##suffix##_fetchor_##mode(P target, T value);       \
  MOB_UPC_API T bupc_atomic##suffix##_fetchxor_##mode(P target, T value);      \
  MOB_UPC_API T bupc_atomic##suffix##_fetchnot_##mode(P target);
#define MOB_UPC_ATOMIC_MODES_(WHICH, suffix, T)    \
  WHICH(suffix, relaxed, T, MOB_UPC_SHARED_(void)) \
  WHICH(suffix, strict, T, MOB_UPC_SHARED_(void))  \
  WHICH(suffix, private, T, void*)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, I, int)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, UI, unsigned int)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, L, long)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, UL, unsigned long)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, I64, int64_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, U64, uint64_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, I32, int32_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, U32, uint32_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_WORDS_, F, float)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_WORDS_, D, double)
#undef MOB_UPC_ATOMIC_WORDS_
#undef MOB_UPC_ATOMIC_NUMBERS_
#undef MOB_UPC_ATOMIC_MODES_

#ifdef __cplusplus
}
#endif
#endif
