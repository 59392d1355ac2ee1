/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ATOMIC_H
#define MOBIUS_ATOMIC_H

/**
 * @file
 * Atomic updates of a target's memory: read-modify-write of words, and accumulate of arrays.
 *
 * - **Atomicity.** Every update of an element is atomic against every other update, by a call of
 * this file, of an element of the same size at the same address, and against mob_get8() …
 * mob_get1() of it; the calls on words also against mob_put8() … mob_put1() (a put to an element
 * that is accumulated to at the same moment may be lost). Floating-point and complex elements are
 * atomic against each other's accumulates, fetches and swaps of the same type, not against integer
 * calls on the same bytes.
 * - **Cost.** Where words are updated by themselves, arrays of integers are accumulated element by
 * element, thirty to a hundred times as slowly as elsewhere: within 1 KiB of a word, and once a
 * process has updated words in more than 8 such places of an allocation, in more and more of it
 * (docs/decisions/0012-where-words-are-updated.md). Keep many counters in an allocation of their
 * own.
 * - **Completion.** The calls on words and mob_fetch_op() are complete at the target when they
 * return. Accumulates complete as puts do (rma.h).
 * - **Ordering.** The calls on words order everything before them, at every target, before
 * everything after them (sequentially consistent). As mob_fence() does, they wait for what goes
 * another way and is under way: long transfers to other hosts (MOBIUS_RMA_BYTES), and what a
 * host-mate was asked to do. Only those on allocated memory of host-mates, which are inlined, do
 * not: after transfers that are only started, to other hosts or exposed memory, mob_fence() comes
 * first.
 * - **Alignment.** Elements are aligned to their size, complex ones to that of a part.
 *
 * Compare LAPI_Rmw, ARMCI_Rmw, MPI_Fetch_and_op, MPI_Compare_and_swap, OpenSHMEM 1.5 §9.8.
 */

#include <mobius/rma.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Adds to a word of 8 bytes and fetches what it held; inlined (docs/performance.md).
 *
 * @param rank    the target
 * @param remote  the word, an address in the target, aligned to its size
 * @param value   what is added; sums wrap, so that signed words work alike
 * @param old     out: what the word held
 * @return MOB_OK, MOB_ERR_STATE (also in a handler, if it would have to wait), MOB_ERR_RANK,
 *         MOB_ERR_RANGE (not the target's memory), MOB_ERR_ARGUMENT (`remote` or `old` null,
 *         `remote` not aligned), MOB_ERR_PEER (the target died). After an error nothing was
 *         changed.
 *
 * Thread safety: any.
 */
MOB_INLINE mob_status_t mob_fetch_add8(mob_rank_t rank, void* remote, uint64_t value,
                                       uint64_t* old);
/** As mob_fetch_add8(), bitwise and. */
MOB_INLINE mob_status_t mob_fetch_and8(mob_rank_t rank, void* remote, uint64_t value,
                                       uint64_t* old);
/** As mob_fetch_add8(), bitwise or. */
MOB_INLINE mob_status_t mob_fetch_or8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old);
/** As mob_fetch_add8(), bitwise exclusive or. */
MOB_INLINE mob_status_t mob_fetch_xor8(mob_rank_t rank, void* remote, uint64_t value,
                                       uint64_t* old);
/** As mob_fetch_add8(); the word becomes `value`. */
MOB_INLINE mob_status_t mob_swap8(mob_rank_t rank, void* remote, uint64_t value, uint64_t* old);

/**
 * Changes a word of 8 bytes if it holds what is expected; inlined.
 *
 * @param rank      the target
 * @param remote    the word, an address in the target, aligned to its size
 * @param expected  what it must hold to be changed
 * @param desired   what it becomes then
 * @param old       out: what it held; equal to `expected` if it was changed
 * @return as mob_fetch_add8()
 *
 * Thread safety: any.
 */
MOB_INLINE mob_status_t mob_compare_swap8(mob_rank_t rank, void* remote, uint64_t expected,
                                          uint64_t desired, uint64_t* old);

/** As mob_fetch_add8(), 4 bytes. */
MOB_INLINE mob_status_t mob_fetch_add4(mob_rank_t rank, void* remote, uint32_t value,
                                       uint32_t* old);
/** As mob_fetch_and8(), 4 bytes. */
MOB_INLINE mob_status_t mob_fetch_and4(mob_rank_t rank, void* remote, uint32_t value,
                                       uint32_t* old);
/** As mob_fetch_or8(), 4 bytes. */
MOB_INLINE mob_status_t mob_fetch_or4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old);
/** As mob_fetch_xor8(), 4 bytes. */
MOB_INLINE mob_status_t mob_fetch_xor4(mob_rank_t rank, void* remote, uint32_t value,
                                       uint32_t* old);
/** As mob_swap8(), 4 bytes. */
MOB_INLINE mob_status_t mob_swap4(mob_rank_t rank, void* remote, uint32_t value, uint32_t* old);
/** As mob_compare_swap8(), 4 bytes. */
MOB_INLINE mob_status_t mob_compare_swap4(mob_rank_t rank, void* remote, uint32_t expected,
                                          uint32_t desired, uint32_t* old);

/**
 * Combines one element of any type with the target's, and fetches what that held.
 *
 * @param rank     the target
 * @param remote   the element, an address in the target
 * @param type     its type
 * @param op       the operation, defined on that type; MOB_REPLACE swaps, MOB_NO_OP only fetches
 * @param operand  the origin's element, any alignment; may be null with MOB_NO_OP
 * @param old      out: the target's element before, any alignment; must not overlap `operand`
 * @return as mob_fetch_add8(); MOB_ERR_ARGUMENT also for an unknown or undefined type or operation
 *
 * Thread safety: any.
 */
MOB_API mob_status_t mob_fetch_op(mob_rank_t rank, void* remote, mob_type_t type, mob_op_t op,
                                  const void* operand, void* old);

/**
 * Combines an array with the target's, element by element: remote := remote op local.
 *
 * @param rank    the target
 * @param remote  its first element, an address in the target
 * @param local   the caller's first element, any alignment
 * @param count   number of elements; 0 does nothing
 * @param type    their type
 * @param op      the operation, defined on that type
 * @return as mob_transfer()
 *
 * Local completion at return, remote completion by a flush. Thread safety: any.
 */
MOB_API mob_status_t mob_accumulate(mob_rank_t rank, void* remote, const void* local, size_t count,
                                    mob_type_t type, mob_op_t op);

/**
 * Adds a scaled array to the target's: remote := remote + scale × local (ARMCI_Acc).
 *
 * @param scale  one element of `type`
 * @return as mob_transfer(). The rest as mob_accumulate().
 */
MOB_API mob_status_t mob_accumulate_scaled(mob_rank_t rank, void* remote, const void* local,
                                           size_t count, mob_type_t type, const void* scale);

/**
 * As mob_accumulate(), and fetches what the target held: MPI_Get_accumulate.
 *
 * @param old  out: `count` elements, any alignment; must not overlap `local`
 * @return as mob_transfer(). The rest as mob_accumulate().
 */
MOB_API mob_status_t mob_fetch_accumulate(mob_rank_t rank, void* remote, const void* local,
                                          void* old, size_t count, mob_type_t type, mob_op_t op);

#include <mobius/detail/atomic_inline.h>

#ifdef __cplusplus
}
#endif
#endif
