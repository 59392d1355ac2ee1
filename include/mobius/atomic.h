/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ATOMIC_H
#define MOBIUS_ATOMIC_H

/**
 * @file
 * Atomic updates of a target's memory: read-modify-write of words, and accumulates of arrays.
 *
 * - **Atomicity.** An update of an element by a call of this file is atomic against every other
 *   update by this file of an element of the same size at the same address, and against mob_get8()
 *   … mob_get1() of it. The calls on words are also atomic against mob_put8() … mob_put1(); a put
 *   to an element that an accumulate updates at the same moment may be lost. Floating-point and
 *   complex elements are atomic against accumulates, fetches and swaps of the same type, not
 *   against integer calls on the same bytes.
 * - **Cost.** Near words that calls on words update, an accumulate of integers works element by
 *   element, thirty to a hundred times as slowly as elsewhere. Near means within 1 KiB of such a
 *   word; once a process has updated words in more than 8 such places of an allocation, the slow
 *   zones grow (docs/decisions/0012-where-words-are-updated.md). Keep many counters in an
 *   allocation of their own.
 * - **Completion.** The calls on words and mob_fetch_op() are complete at the target when they
 *   return. Accumulates complete as puts do (rma.h).
 * - **Ordering.** The calls on words are sequentially consistent: everything before them, at every
 *   target, comes before everything after them. As mob_fence() does, they wait for operations under
 *   way that take another path: long transfers to other hosts (MOBIUS_RMA_BYTES), and copies that a
 *   local peer was asked to carry out. The inlined calls on allocated memory of local peers do not
 *   wait: after starting transfers to other hosts or to exposed memory, call mob_fence() first.
 * - **Alignment.** Elements are aligned to their size, complex ones to the size of one real.
 *
 * Compare LAPI_Rmw, ARMCI_Rmw, MPI_Fetch_and_op, MPI_Compare_and_swap, OpenSHMEM 1.5 §9.8. */

#include <mobius/rma.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Adds to a word of 8 bytes and fetches its former value. Inlined into the caller
 * (docs/performance.md).
 *
 * @param rank    the target
 * @param remote  the word, an address in the target, aligned to its size
 * @param value   the value to add; sums wrap, so signed words work alike
 * @param old     out: the word before the call
 * @return MOB_OK, MOB_ERR_STATE (also in a handler, if it would have to wait), MOB_ERR_RANK,
 *         MOB_ERR_RANGE (not the target's memory), MOB_ERR_ARGUMENT (`remote` or `old` null,
 *         `remote` not aligned), MOB_ERR_PEER (the target died). After an error nothing was
 *         changed.
 *
 * Blocks until it is complete at the target. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_fetch_add8(mob_rank_t rank, void* remote, uint64_t value,
                                       uint64_t* old);
/** Replaces a word by its bitwise and with `value`; as mob_fetch_add8(). */
MOB_INLINE mob_status_t mob_fetch_and8(mob_rank_t rank, void* remote, uint64_t value,
                                       uint64_t* old);
/** Replaces a word by its bitwise or with `value`; as mob_fetch_add8(). */
MOB_INLINE mob_status_t mob_fetch_or8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old);
/** Replaces a word by its bitwise exclusive or with `value`; as mob_fetch_add8(). */
MOB_INLINE mob_status_t mob_fetch_xor8(mob_rank_t rank, void* remote, uint64_t value,
                                       uint64_t* old);
/** Replaces a word by `value`; as mob_fetch_add8(). */
MOB_INLINE mob_status_t mob_swap8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old);

/**
 * Replaces a word of 8 bytes if it holds an expected value. Inlined into the caller.
 *
 * @param rank      the target
 * @param remote    the word, an address in the target, aligned to its size
 * @param expected  the value that it must hold to be replaced
 * @param desired   its new value
 * @param old       out: the word before the call; equal to `expected` if it was replaced
 * @return as mob_fetch_add8()
 *
 * Blocks until it is complete at the target. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_compare_swap8(mob_rank_t rank, void* remote, uint64_t expected,
                                          uint64_t desired, uint64_t* old);

/** Works on 4 bytes; as mob_fetch_add8(). */
MOB_INLINE mob_status_t mob_fetch_add4(mob_rank_t rank, void* remote, uint32_t value,
                                       uint32_t* old);
/** Works on 4 bytes; as mob_fetch_and8(). */
MOB_INLINE mob_status_t mob_fetch_and4(mob_rank_t rank, void* remote, uint32_t value,
                                       uint32_t* old);
/** Works on 4 bytes; as mob_fetch_or8(). */
MOB_INLINE mob_status_t mob_fetch_or4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old);
/** Works on 4 bytes; as mob_fetch_xor8(). */
MOB_INLINE mob_status_t mob_fetch_xor4(mob_rank_t rank, void* remote, uint32_t value,
                                       uint32_t* old);
/** Works on 4 bytes; as mob_swap8(). */
MOB_INLINE mob_status_t mob_swap4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old);
/** Works on 4 bytes; as mob_compare_swap8(). */
MOB_INLINE mob_status_t mob_compare_swap4(mob_rank_t rank, void* remote, uint32_t expected,
                                          uint32_t desired, uint32_t* old);

/**
 * Combines one element of any type with the target's element, and fetches the former element of the
 * target.
 *
 * @param rank     the target
 * @param remote   the element, an address in the target
 * @param type     its type
 * @param op       an operation that is defined on the type; MOB_REPLACE swaps, MOB_NO_OP only
 *                 fetches
 * @param operand  the origin's element, any alignment; may be null with MOB_NO_OP
 * @param old      out: the target's element before the call, any alignment; must not overlap
 *                 `operand`
 * @return as mob_fetch_add8(); MOB_ERR_ARGUMENT also for an unknown type or operation, or an
 *         operation that the type lacks
 *
 * Blocks until it is complete at the target. Thread safety: any.
 */
MOB_API mob_status_t mob_fetch_op(mob_rank_t rank, void* remote, mob_type_t type, mob_op_t op,
                                  const void* operand, void* old);

/**
 * Combines an array with the target's, element by element: remote := remote op local.
 *
 * @param rank    the target
 * @param remote  its first element, an address in the target
 * @param local   the caller's first element, any alignment; the caller may change it when the call
 *                returns
 * @param count   number of elements; 0 does nothing
 * @param type    their type
 * @param op      an operation that is defined on the type
 * @return as mob_transfer()
 *
 * Blocks until local completion; a flush waits for remote completion. Thread safety: any.
 */
MOB_API mob_status_t mob_accumulate(mob_rank_t rank, void* remote, const void* local, size_t count,
                                    mob_type_t type, mob_op_t op);

/**
 * Adds a scaled array to the target's: remote := remote + scale × local (ARMCI_Acc). Otherwise as
 * mob_accumulate().
 *
 * @param scale  one element of `type`
 * @return as mob_transfer()
 *
 * Blocks until local completion. Thread safety: any.
 */
MOB_API mob_status_t mob_accumulate_scaled(mob_rank_t rank, void* remote, const void* local,
                                           size_t count, mob_type_t type, const void* scale);

/**
 * Accumulates as mob_accumulate(), and fetches the target's former elements (MPI_Get_accumulate).
 *
 * @param old  out: `count` elements, any alignment; must not overlap `local`
 * @return as mob_transfer()
 *
 * Blocks until the former elements have arrived. Thread safety: any.
 */
MOB_API mob_status_t mob_fetch_accumulate(mob_rank_t rank, void* remote, const void* local,
                                          void* old, size_t count, mob_type_t type, mob_op_t op);

#include <mobius/detail/atomic_inline.h>

#ifdef __cplusplus
}
#endif
#endif
