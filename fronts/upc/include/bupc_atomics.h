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

/* The whole names, since <complex.h> defines I. */
#define MOB_UPC_ATOMIC_WORDS_(name, mode, T, P)          \
  MOB_UPC_API T name##_read_##mode(P target);            \
  MOB_UPC_API void name##_set_##mode(P target, T value); \
  MOB_UPC_API T name##_swap_##mode(P target, T value);   \
  MOB_UPC_API T name##_cswap_##mode(P target, T old_value, T new_value);
#define MOB_UPC_ATOMIC_NUMBERS_(name, mode, T, P)               \
  MOB_UPC_ATOMIC_WORDS_(name, mode, T, P)                       \
  MOB_UPC_API T name##_mswap_##mode(P target, T mask, T value); \
  MOB_UPC_API T name##_fetchadd_##mode(P target, T value);      \
  MOB_UPC_API T name##_fetchand_##mode(P target, T value);      \
  MOB_UPC_API T name##_fetchor_##mode(P target, T value);       \
  MOB_UPC_API T name##_fetchxor_##mode(P target, T value);      \
  MOB_UPC_API T name##_fetchnot_##mode(P target);
#define MOB_UPC_ATOMIC_MODES_(WHICH, name, T)    \
  WHICH(name, relaxed, T, MOB_UPC_SHARED_(void)) \
  WHICH(name, strict, T, MOB_UPC_SHARED_(void))  \
  WHICH(name, private, T, void*)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicI, int)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicUI, unsigned int)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicL, long)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicUL, unsigned long)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicI64, int64_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicU64, uint64_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicI32, int32_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_NUMBERS_, bupc_atomicU32, uint32_t)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_WORDS_, bupc_atomicF, float)
MOB_UPC_ATOMIC_MODES_(MOB_UPC_ATOMIC_WORDS_, bupc_atomicD, double)
#undef MOB_UPC_ATOMIC_WORDS_
#undef MOB_UPC_ATOMIC_NUMBERS_
#undef MOB_UPC_ATOMIC_MODES_

#ifdef __cplusplus
}
#endif
#endif
