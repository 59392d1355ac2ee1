/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_RMA_H
#define MOBIUS_RMA_H

/**
 * @file
 * Put, get and their completion.
 *
 * The target takes no part in any of them. Remote addresses are addresses in the target's own
 * address space (mob_mem_address()), inside one allocation.
 *
 * - **Local completion.** Every call without "nb" in its name blocks until the caller's buffer may
 * be reused (put) or holds the data (get). Nothing else is kept of it.
 * - **Remote completion.** A put is complete at the target, visible to every process, when a later
 *   mob_flush() of that target or mob_flush_all() returns.
 * - **Ordering.** Two puts may become visible in any order unless a mob_fence() or a flush of the
 *   context of the first (context.h) stands between them. A mob_get8() … mob_get1() that reads a
 * value put after a fence sees, and so do the caller's later reads, everything its origin put
 * before that fence. Nor is a get ordered with the caller's own puts: one to the same bytes may
 * read what was there before an earlier put that is not complete, or what a later put writes,
 * unless a flush stands between them. (So it is with exposed memory on one host, too: its owner may
 * be asked to do the one and not the other.)
 * - **Atomicity.** An aligned mob_put8() … mob_get1() is single-copy atomic: a concurrent reader
 *   sees the old or the new value, never a mixture. Larger or unaligned transfers are not.
 *
 * Compare LAPI_Put, LAPI_Get, LAPI_Fence (paper 1, §2) and MPI_Put, MPI_Get, MPI_Win_flush.
 */

#include <mobius/memory.h>
#include <mobius/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copies bytes of the caller into a target's memory.
 *
 * @param rank    the target
 * @param remote  first byte to write, an address in the target
 * @param local   first byte to read, any memory of the caller; must not overlap the destination
 * @param bytes   how many; 0 does nothing and allows any non-negative rank of the job
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK, MOB_ERR_RANGE (outside one allocation of the target,
 *         or `remote + bytes` overflows), MOB_ERR_ARGUMENT (null with bytes > 0).
 *         Of exposed memory (expose.h) and of ranks on other hosts also MOB_ERR_PEER (the target
 *         died), MOB_ERR_MEMORY, MOB_ERR_SYSTEM (the kernel does not copy, or the library's thread
 *         cannot be started) and, where it would have to wait in a handler, MOB_ERR_STATE; what the
 *         target finds wrong the next flush returns. After an error nothing was written.
 *
 * Thread safety: any.
 */
MOB_API mob_status_t mob_put(mob_rank_t rank, void* remote, const void* local, size_t bytes);

/**
 * Copies bytes of a target's memory to the caller.
 *
 * @param rank    the target
 * @param remote  first byte to read, an address in the target
 * @param local   first byte to write, any memory of the caller; must not overlap the source
 * @param bytes   how many; 0 does nothing
 * @return as mob_put(), with all that went wrong
 *
 * Thread safety: any.
 */
MOB_API mob_status_t mob_get(mob_rank_t rank, const void* remote, void* local, size_t bytes);

/**
 * Starts a put; as mob_put() otherwise.
 *
 * @param handle  out: for mob_wait() and its kin (transfer.h); local completion: the buffer may be
 *                reused
 * @return as mob_put(); MOB_ERR_ARGUMENT also if `handle` is null
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_put_nb(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                mob_handle_t* handle);
/** Starts a get; as mob_put_nb(). Local completion: the buffer holds the data. */
MOB_API mob_status_t mob_get_nb(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                                mob_handle_t* handle);
/**
 * Starts a put that the next flush of the calling thread's context completes; as mob_put_nb().
 *
 * To another host it may only be recorded, and leaves with a later call of the library that waits
 * (a flush, a barrier, a get that is waited for), with mob_poll(), or when enough is recorded: who
 * computes after it and wants the bytes to move meanwhile calls mob_poll() once. As do all calls
 * that only start an operation without a handle ("nbi", mob_transfer_nbi()); see docs/scheduler.md.
 */
MOB_INLINE mob_status_t mob_put_nbi(mob_rank_t rank, void* remote, const void* local, size_t bytes);
/** Starts a get that the next flush of the calling thread's context completes; as mob_get_nb(). */
MOB_INLINE mob_status_t mob_get_nbi(mob_rank_t rank, const void* remote, void* local, size_t bytes);

/**
 * Puts bytes, then changes a word of the target that tells it so: who sees the new word sees the
 * bytes. Wakes who waits for the word there.
 *
 * @param rank    the target
 * @param remote  first byte to write, an address in the target
 * @param local   first byte to read
 * @param bytes   how many; 0 only signals
 * @param signal  the word, an address in the target aligned to 8 bytes, not in what is written
 * @param value   what it becomes, or what is added to it (atomic)
 * @param op      which of the two
 * @return as mob_put()
 *
 * Local completion at return. Thread safety: any. Compare OpenSHMEM 1.5 §9.9.
 */
MOB_API mob_status_t mob_put_signal(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                    uint64_t* signal, uint64_t value, mob_signal_op_t op);
/** Gets bytes, then changes a word of the target that tells it that they have been read; as
 *  mob_put_signal(). */
MOB_API mob_status_t mob_get_signal(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                                    uint64_t* signal, uint64_t value, mob_signal_op_t op);

/**
 * Starts a put that counts up to three words, each by 1, as it comes along. Who waits for one of
 * them in mob_wait_until_u8() and its kin is woken at once.
 *
 * @param rank             the target
 * @param remote           first byte to write, an address in the target
 * @param local            first byte to read; the caller's and unchanged until local completion
 * @param bytes            how many; 0 only counts
 * @param target_word      a word of the target, its address there, aligned to 8 bytes: counted when
 *                         the data is there; may be null
 * @param origin_word      an aligned word of the caller, any memory of it: counted at local
 *                         completion, before the call returns if that has come; may be null
 * @param completion_word  the same, at remote completion: the target's word has been counted
 * @return as mob_put(); MOB_ERR_ARGUMENT also for a word that is not aligned. After an error
 *         nothing was written or counted. An error found later is returned by the flush.
 *
 * Does not block, except for flow control; also covered by the next mob_flush() and
 * mob_flush_local() of the calling thread's context. Words that others count must not be changed by
 * plain stores meanwhile. Thread safety: any. Compare LAPI_Put (paper 1, §2).
 */
MOB_API mob_status_t mob_put_counted(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                     uint64_t* target_word, uint64_t* origin_word,
                                     uint64_t* completion_word);
/** Starts a get that counts words; as mob_put_counted(). The target's is counted when the data has
 *  been read, the caller's when it has arrived. */
MOB_API mob_status_t mob_get_counted(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                                     uint64_t* target_word, uint64_t* origin_word,
                                     uint64_t* completion_word);

/**
 * Waits until everything that was started earlier in the calling thread's context (context.h) is
 * complete at one target.
 *
 * @param rank  the target
 * @return MOB_OK, MOB_ERR_STATE (also in a handler, if it would have to wait), MOB_ERR_RANK, or the
 *         first error of an operation without a handle that was started in the context since the
 *         last flush (MOB_ERR_PEER: its target died). Where a message of the program could not be
 *         delivered to a target that died, each flush of it, and of all, says so from then on:
 *         MOB_ERR_PEER; what else was started is complete all the same.
 *
 * A full memory fence between host-mates. Does not wait for other targets. Thread safety: any;
 * covers puts of other threads that happened before.
 */
MOB_INLINE mob_status_t mob_flush(mob_rank_t rank);

/** As mob_flush(), for every target. @return as mob_flush() */
MOB_INLINE mob_status_t mob_flush_all(void);

/** As mob_flush(), for local completion only: buffers may be reused, gets have arrived. */
MOB_INLINE mob_status_t mob_flush_local(mob_rank_t rank);

/** As mob_flush_local(), for every target. @return as mob_flush() */
MOB_INLINE mob_status_t mob_flush_local_all(void);

/**
 * Orders: puts that the calling thread started in the context that it uses (context.h) become
 * visible at each target before puts after the fence, in whatever context. Does not wait for
 * completion, but of what goes another way than later puts: long transfers to other hosts
 * (MOBIUS_RMA_BYTES), and what a host-mate was asked to do. Between host-mates it costs no
 * instruction on x86-64.
 *
 * @return MOB_OK; MOB_ERR_STATE (also in a handler, if it would have to wait); MOB_ERR_PEER (a
 *         target died and did not answer), and what gaining access returns that was only started
 *         (mob_access_lock_nbi()). Errors of operations are left to the next flush.
 *
 * Thread safety: any.
 */
MOB_INLINE mob_status_t mob_fence(void);

/**
 * Puts one value, inlined into the caller: one predicted branch and the store when the target is a
 * host-mate (docs/performance.md).
 *
 * @param rank    the target
 * @param remote  where, an address in the target; aligned to the value's size for atomicity
 *                (unaligned works, slower and not atomic)
 * @param value   the value
 * @return as mob_put()
 *
 * Completion as mob_put(). Thread safety: any.
 */
MOB_INLINE mob_status_t mob_put8(mob_rank_t rank, void* remote, uint64_t value);
/** As mob_put8(), 4 bytes. */
MOB_INLINE mob_status_t mob_put4(mob_rank_t rank, void* remote, uint32_t value);
/** As mob_put8(), 2 bytes. */
MOB_INLINE mob_status_t mob_put2(mob_rank_t rank, void* remote, uint16_t value);
/** As mob_put8(), 1 byte. */
MOB_INLINE mob_status_t mob_put1(mob_rank_t rank, void* remote, uint8_t value);

/**
 * Gets one value, inlined into the caller. An acquire load: see *Ordering* above. Reading the own
 * rank is how a program polls for a put: `do mob_get8(me, flag, &v); while (v != expected);`.
 *
 * @param rank    the target
 * @param remote  where, an address in the target; aligned to the value's size for atomicity
 * @param value   out: the value
 * @return as mob_get(); MOB_ERR_ARGUMENT also if `value` is null
 *
 * Thread safety: any.
 */
MOB_INLINE mob_status_t mob_get8(mob_rank_t rank, const void* remote, uint64_t* value);
/** As mob_get8(), 4 bytes. */
MOB_INLINE mob_status_t mob_get4(mob_rank_t rank, const void* remote, uint32_t* value);
/** As mob_get8(), 2 bytes. */
MOB_INLINE mob_status_t mob_get2(mob_rank_t rank, const void* remote, uint16_t* value);
/** As mob_get8(), 1 byte. */
MOB_INLINE mob_status_t mob_get1(mob_rank_t rank, const void* remote, uint8_t* value);

/**
 * Waits until every process of the job called it.
 *
 * Collective over the job. Completes transfers as a mob_flush_all() does: what was put before the
 * barrier, in the context that the calling thread uses, is visible to every process after it. Does
 * not wait for the handlers of messages, as that does. Spins briefly, yields, then sleeps (settings
 * MOBIUS_SPIN_NS, MOBIUS_YIELDS).
 *
 * @return MOB_OK; MOB_ERR_STATE (also in a handler); MOB_ERR_PEER (a process died or left the job);
 *         MOB_ERR_MEMORY; or what a mob_flush_all() would return of transfers: the barrier has been
 *         then
 *
 * Thread safety: single per job: all processes make their collective calls in the same order.
 */
MOB_API mob_status_t mob_barrier(void);

#include <mobius/detail/inline.h>
#include <mobius/detail/stretch_inline.h>

#ifdef __cplusplus
}
#endif
#endif
