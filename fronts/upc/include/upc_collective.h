/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_COLLECTIVE_H
#define UPC_COLLECTIVE_H

/**
 * @file
 * UPC 1.3, §7.3: collective calls. All threads call them, in the same order, with the same
 * arguments; `flags` says how they synchronise (upc_types.h). None between upc_notify and upc_wait.
 * `nbytes` is the size of a block. Source and destination must not overlap.
 *
 * Errors end the job with a message. */

#include <mobius_upc/faces.h>
#include <upc_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A function of the caller, associative and commutative: any order of combining. */
#define UPC_FUNC 0x200ul
/** A function of the caller, associative: combined in the order of the elements. */
#define UPC_NONCOMM_FUNC 0x400ul

/** Copies the block at `src` to each thread's block: `shared [nbytes] char dst[nbytes * THREADS]`.
 */
MOB_UPC_API void upc_all_broadcast(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                   size_t nbytes, upc_flag_t flags);
/** Copies block i of `shared [] char src[nbytes * THREADS]` to thread i's block of `dst`. */
MOB_UPC_API void upc_all_scatter(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                 size_t nbytes, upc_flag_t flags);
/** Copies thread i's block of `src` to block i of `shared [] char dst[nbytes * THREADS]`. */
MOB_UPC_API void upc_all_gather(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                size_t nbytes, upc_flag_t flags);
/** Copies thread i's block of `src` to block i of every thread's THREADS blocks of `dst`. */
MOB_UPC_API void upc_all_gather_all(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                    size_t nbytes, upc_flag_t flags);
/** Copies block i of thread j's blocks of `src` to block j of thread i's blocks of `dst`. */
MOB_UPC_API void upc_all_exchange(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                  size_t nbytes, upc_flag_t flags);
/** Copies thread i's block of `src` to thread `perm[i]`'s block of `dst`. */
MOB_UPC_API void upc_all_permute(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src,
                                 MOB_UPC_SHARED_(const int) perm, size_t nbytes, upc_flag_t flags);

/* For each type: upc_all_reduceT() combines `nelems` elements of `src`, in blocks of `blk_size` (0:
 * indefinite), into the object at `dst`. upc_all_prefix_reduceT() writes into element i of `dst`,
 * which has the layout of `src`, the combination of elements 0 to i. bupc_all_reduce_allT(), of
 * Berkeley UPC, gives the result to each thread's element of `shared T dst[THREADS]`. */
#define MOB_UPC_DECLARE_REDUCE_(name, T)                                                         \
  MOB_UPC_API void name(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src, upc_op_t op, \
                        size_t nelems, size_t blk_size, T (*func)(T, T), upc_flag_t flags);
#define MOB_UPC_DECLARE_REDUCES_(suffix, T)                 \
  MOB_UPC_DECLARE_REDUCE_(upc_all_reduce##suffix, T)        \
  MOB_UPC_DECLARE_REDUCE_(upc_all_prefix_reduce##suffix, T) \
  MOB_UPC_DECLARE_REDUCE_(bupc_all_reduce_all##suffix, T)
MOB_UPC_DECLARE_REDUCES_(C, signed char)
MOB_UPC_DECLARE_REDUCES_(UC, unsigned char)
MOB_UPC_DECLARE_REDUCES_(S, short)
MOB_UPC_DECLARE_REDUCES_(US, unsigned short)
MOB_UPC_DECLARE_REDUCES_(I, int)
MOB_UPC_DECLARE_REDUCES_(UI, unsigned int)
MOB_UPC_DECLARE_REDUCES_(L, long)
MOB_UPC_DECLARE_REDUCES_(UL, unsigned long)
MOB_UPC_DECLARE_REDUCES_(F, float)
MOB_UPC_DECLARE_REDUCES_(D, double)
MOB_UPC_DECLARE_REDUCES_(LD, long double)
#undef MOB_UPC_DECLARE_REDUCE_
#undef MOB_UPC_DECLARE_REDUCES_

#ifdef __cplusplus
}
#endif
#endif
