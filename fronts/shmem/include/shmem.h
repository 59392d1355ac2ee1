/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SHMEM_H
#define MOBIUS_SHMEM_H

/**
 * @file
 * OpenSHMEM 1.6 over Möbius (docs/fronts/shmem.md): every function of the standard with its C11
 * type-generic names, overloads for C++, and the deprecated functions of former versions.
 *
 * Puts, gets and atomic updates of single elements, fences and waits are inlined. A program that
 * intercepts calls (pshmem.h) defines SHMEM_NO_INLINE before it includes this file; then every call
 * is a call. */

#include <shmem/types.h>
#include <stddef.h>
#include <stdint.h>

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING "Moebius OpenSHMEM"

/* Thread support: the library gives SHMEM_THREAD_MULTIPLE at every level. */
#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* The values are those of mob_compare_t. */
#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_GE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_LE 5

/* The values are those of mob_signal_op_t. */
#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L
#define SHMEM_CTX_SESSION_BATCH 1L
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L
#define SHMEM_TEAM_NUM_CONTEXTS 1L
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

/* Lengths of work arrays. A collective call of an active set that is new to the caller makes a team
 * of it, and uses pSync for that; all others leave pSync alone. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 32
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* Names of former versions. */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

#ifdef __cplusplus
extern "C" {
#define SHMEM_NORETURN_ __attribute__((noreturn))
#define SHMEM_NULL_(type) (static_cast<type>(nullptr))
#else
#define SHMEM_NORETURN_ __attribute__((noreturn))
#define SHMEM_NULL_(type) ((type)0)
#endif

/* The predefined handles are addresses of objects in the library. */
extern MOB_API struct shmem_team_ shmem_team_world_;
extern MOB_API struct shmem_team_ shmem_team_shared_;
extern MOB_API struct shmem_context_ shmem_ctx_default_;
#define SHMEM_TEAM_WORLD (&shmem_team_world_)
#define SHMEM_TEAM_SHARED (&shmem_team_shared_)
#define SHMEM_TEAM_INVALID SHMEM_NULL_(shmem_team_t)
#define SHMEM_CTX_DEFAULT (&shmem_ctx_default_)
#define SHMEM_CTX_INVALID SHMEM_NULL_(shmem_ctx_t)

#define SHMEM_FUNCTION_(result, name, parameters) MOB_API result shmem_##name parameters;
#include <shmem/functions.h>
#undef SHMEM_FUNCTION_

/* Deprecated; as shmem_init(), shmem_my_pe(), shmem_n_pes(), shmem_malloc() and so on. */
MOB_API void start_pes(int npes);
MOB_API int _my_pe(void);
MOB_API int _num_pes(void);
MOB_API void* shmalloc(size_t size);
MOB_API void* shrealloc(void* ptr, size_t size);
MOB_API void* shmemalign(size_t alignment, size_t size);
MOB_API void shfree(void* ptr);

/* Names of SGI's and Cray's libraries, for which a program may want its own meaning. */
#ifndef SHMEM_NO_OLD_NAMES
MOB_API int my_pe(void);
MOB_API int num_pes(void);
#endif

/* Deprecated: the forms for long, whose names are those of the type-generic forms. */
#if !defined(__cplusplus) || defined(SHMEM_LIBRARY_)
MOB_API void shmem_wait(long* ivar, long cmp_value);
MOB_API void shmem_wait_until(long* ivar, int cmp, long cmp_value);
#endif

#ifndef SHMEM_NO_INLINE
#include <shmem/inline.h>
#endif

#ifdef __cplusplus
}
#endif

#ifndef SHMEM_LIBRARY_
#ifdef __cplusplus
#include <shmem/overloads.h>
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include <shmem/generic.h>
#else
/* Deprecated: the forms for long, as above. */
#define shmem_swap(dest, value, pe) shmem_long_swap(dest, value, pe)
#define shmem_cswap(dest, cond, value, pe) shmem_long_cswap(dest, cond, value, pe)
#define shmem_fadd(dest, value, pe) shmem_long_fadd(dest, value, pe)
#define shmem_finc(dest, pe) shmem_long_finc(dest, pe)
#define shmem_add(dest, value, pe) shmem_long_add(dest, value, pe)
#define shmem_inc(dest, pe) shmem_long_inc(dest, pe)
#endif
#endif

#endif
