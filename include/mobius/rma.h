/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_RMA_H
#define MOBIUS_RMA_H

/**
 * @file
 * Put, get and their completion.
 *
 * The target takes no part in any of them. A remote address is an address in the target's own
 * address space (mob_mem_address()), inside one allocation.
 *
 * - **Local completion.** Every call without "nb" in its name blocks until the caller may reuse its
 *   buffer (put) or the buffer holds the data (get). The library keeps no reference to the buffer.
 * - **Remote completion.** A put is complete at the target, and visible to every process, when a
 *   later mob_flush() of that target or mob_flush_all() returns.
 * - **Ordering.** Two puts may become visible in any order, unless a mob_fence() or a flush of the
 *   context of the first (context.h) stands between them. If a mob_get8() … mob_get1() reads a
 *   value put after a fence, then it and the caller's later reads see everything that the value's
 *   origin put before that fence. A get is not ordered with the caller's own puts: without a flush
 *   between them, a get may read the bytes as they were before an earlier put that is not complete,
 *   or the bytes of a later put. This also holds for exposed memory on one host, where the owner
 *   may carry out one of the two and the origin the other.
 * - **Memory that the caller may not access.** In operations on ranks of other hosts, of every
 * shape and kind, local memory that the caller may not read, or write, is MOB_ERR_ARGUMENT, from
 * the call or from its completion. Where the calling thread itself copies, it ends the process with
 *   SIGSEGV, as memcpy() would: on one host; in a mob_put_nbi() of at most 64 bytes; and in a put
 *   from memory that the thread could read in an earlier put, but can no longer.
 * - **Atomicity.** An aligned mob_put8() … mob_get1() is single-copy atomic: a concurrent reader
 *   sees the old or the new value, never a mixture. Larger or unaligned transfers are not atomic.
 *
 * Compare LAPI_Put, LAPI_Get, LAPI_Fence (paper 1, §2) and MPI_Put, MPI_Get, MPI_Win_flush. */

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
 * @param local   first byte to read, any memory of the caller; must not overlap the destination.
 *                The caller may change it when the call returns.
 * @param bytes   number of bytes; 0 does nothing and allows any rank of the job
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK, MOB_ERR_RANGE (outside one allocation of the target,
 *         or `remote + bytes` overflows), MOB_ERR_ARGUMENT (null with bytes > 0). For exposed
 *         memory (expose.h) and for ranks on other hosts also MOB_ERR_PEER (the target died),
 *         MOB_ERR_MEMORY, MOB_ERR_SYSTEM (the kernel refuses to copy, or the library's thread
 *         cannot be started) and MOB_ERR_STATE in a handler where the call would have to wait.
 *         After an error nothing was written. The next flush returns the errors that only the
 *         target can detect.
 *
 * Blocks until local completion. Thread safety: any.
 */
MOB_API mob_status_t mob_put(mob_rank_t rank, void* remote, const void* local, size_t bytes);

/**
 * Copies bytes of a target's memory to the caller.
 *
 * @param rank    the target
 * @param remote  first byte to read, an address in the target
 * @param local   first byte to write, any memory that the caller may write; must not overlap the
 *                source. Memory that it may not write is MOB_ERR_ARGUMENT for a rank on another
 *                host, and where the kernel copies; elsewhere it ends the process with SIGSEGV, as
 *                memcpy() would.
 * @param bytes   number of bytes; 0 does nothing
 * @return as mob_put(); every error of the transfer is returned here
 *
 * Blocks until the data has arrived. Thread safety: any.
 */
MOB_API mob_status_t mob_get(mob_rank_t rank, const void* remote, void* local, size_t bytes);

/**
 * Starts a put; otherwise as mob_put().
 *
 * @param rank    the target
 * @param remote  first byte to write, an address in the target
 * @param local   first byte to read; the caller must not change it before local completion
 * @param bytes   number of bytes
 * @param handle  out: for mob_wait() and related calls (transfer.h), which wait for local
 *                completion: the caller may then reuse `local`
 * @return as mob_put(); MOB_ERR_ARGUMENT also if `handle` is null
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_put_nb(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                mob_handle_t* handle);
/**
 * Starts a get; otherwise as mob_get().
 *
 * @param rank    the target
 * @param remote  first byte to read, an address in the target
 * @param local   first byte to write; must stay until local completion, and holds the data then
 * @param bytes   number of bytes
 * @param handle  out: for mob_wait() and related calls (transfer.h), which wait for local
 *                completion
 * @return as mob_get(); MOB_ERR_ARGUMENT also if `handle` is null
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_API mob_status_t mob_get_nb(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                                mob_handle_t* handle);
/**
 * Starts a put that the next flush of the calling thread's context completes.
 *
 * A put to another host may only be recorded. It is then sent by a later call that waits (a flush,
 * a barrier, a get that is waited for), by mob_poll(), or when enough is recorded. A program that
 * computes next and wants the bytes to travel meanwhile calls mob_poll() once. The same holds for
 * every call that starts an operation without a handle ("nbi", mob_transfer_nbi()); see
 * docs/scheduler.md.
 *
 * @param rank    the target
 * @param remote  first byte to write, an address in the target
 * @param local   first byte to read; the caller must not change it before local completion
 * @param bytes   number of bytes
 * @return as mob_put(); the flush returns an error that is found later
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_put_nbi(mob_rank_t rank, void* remote, const void* local, size_t bytes);
/**
 * Starts a get that the next flush of the calling thread's context completes. The data has arrived
 * after that flush. As mob_put_nbi(), it may only be recorded at first.
 *
 * @param rank    the target
 * @param remote  first byte to read, an address in the target
 * @param local   first byte to write; must stay until local completion, and holds the data then
 * @param bytes   number of bytes
 * @return as mob_get(); the flush returns an error that is found later
 *
 * Does not block, except for flow control. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_get_nbi(mob_rank_t rank, const void* remote, void* local, size_t bytes);

/**
 * Puts bytes, then changes a signal word of the target. A reader that sees the new word sees the
 * bytes. Wakes the threads of the target that wait for the word.
 *
 * @param rank    the target
 * @param remote  first byte to write, an address in the target
 * @param local   first byte to read; the caller may change it when the call returns
 * @param bytes   number of bytes; 0 only signals
 * @param signal  the word, an address in the target aligned to 8 bytes, outside the bytes written
 * @param value   the new value, or the value to add (atomic)
 * @param op      chooses one of the two
 * @return as mob_put()
 *
 * Blocks until local completion. Thread safety: any. Compare OpenSHMEM 1.5 §9.9.
 */
MOB_API mob_status_t mob_put_signal(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                    uint64_t* signal, uint64_t value, mob_signal_op_t op);
/**
 * Gets bytes, then changes a signal word of the target, which tells the target that its bytes have
 * been read; as mob_put_signal().
 *
 * @return as mob_get()
 *
 * Blocks until the data has arrived. Thread safety: any.
 */
MOB_API mob_status_t mob_get_signal(mob_rank_t rank, const void* remote, void* local, size_t bytes,
                                    uint64_t* signal, uint64_t value, mob_signal_op_t op);

/**
 * Starts a put that adds 1 to up to three words, one at each stage of its completion. Wakes the
 * threads that wait for one of the words in mob_wait_until_u8() and related calls.
 *
 * @param rank             the target
 * @param remote           first byte to write, an address in the target
 * @param local            first byte to read; the caller must not change it before local completion
 * @param bytes            number of bytes; 0 only counts
 * @param target_word      a word of the target, its address there, aligned to 8 bytes: counted when
 *                         the data has arrived; may be null
 * @param origin_word      an aligned word of the caller, in any memory: counted at local
 *                         completion, before the call returns if that has come; may be null
 * @param completion_word  the same, counted at remote completion, after the target's word; may be
 *                         null
 * @return as mob_put(); MOB_ERR_ARGUMENT also for an unaligned word. After an error nothing was
 *         written or counted. The flush returns an error that is found later.
 *
 * Does not block, except for flow control. The next mob_flush() and mob_flush_local() of the
 * calling thread's context cover it too. No thread may change the words by plain stores while
 * transfers count them. Thread safety: any. Compare LAPI_Put (paper 1, §2).
 */
MOB_API mob_status_t mob_put_counted(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                     uint64_t* target_word, uint64_t* origin_word,
                                     uint64_t* completion_word);
/**
 * Starts a get that counts words; as mob_put_counted(). The target's word is counted when the data
 * has been read, the caller's words when the data has arrived.
 *
 * @return as mob_put_counted()
 *
 * Does not block, except for flow control. Thread safety: any.
 */
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
 *         last flush (MOB_ERR_PEER: its target died). If a message of the program could not be
 *         delivered to a target that died, every later flush of that target, and of all targets,
 *         returns MOB_ERR_PEER; all else that was started is complete even so.
 *
 * Blocks, makes progress. A full memory fence between local peers. Does not wait for other targets.
 * Covers puts of other threads that happened before. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_flush(mob_rank_t rank);

/**
 * Waits as mob_flush(), for every target.
 *
 * @return as mob_flush()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_flush_all(void);

/**
 * Waits as mob_flush(), but only for local completion: buffers may be reused, gets have arrived.
 *
 * @return as mob_flush()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_flush_local(mob_rank_t rank);

/**
 * Waits as mob_flush_local(), for every target.
 *
 * @return as mob_flush()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_flush_local_all(void);

/**
 * Orders puts: those that the calling thread started in its context (context.h) become visible at
 * each target before puts after the fence, in whatever context.
 *
 * Does not wait for completion, except of operations that take another path than later puts: long
 * transfers to other hosts (MOBIUS_RMA_BYTES), and copies that a local peer was asked to carry out.
 * Between local peers the fence costs no instruction on x86-64.
 *
 * @return MOB_OK; MOB_ERR_STATE (also in a handler, if it would have to wait); MOB_ERR_PEER (a
 *         target died and did not answer); and the errors of gaining access that was only started
 *         (mob_access_lock_nbi()). The next flush returns the errors of operations.
 *
 * Thread safety: any.
 */
MOB_INLINE mob_status_t mob_fence(void);

/**
 * Puts one value. Inlined into the caller: for a local peer it is one predicted branch and the
 * store (docs/performance.md).
 *
 * @param rank    the target
 * @param remote  address in the target; an aligned value is written atomically, an unaligned one
 *                slower and not atomically
 * @param value   the value
 * @return as mob_put()
 *
 * Completes as mob_put(). Thread safety: any.
 */
MOB_INLINE mob_status_t mob_put8(mob_rank_t rank, void* remote, uint64_t value);
/** Puts 4 bytes; as mob_put8(). */
MOB_INLINE mob_status_t mob_put4(mob_rank_t rank, void* remote, uint32_t value);
/** Puts 2 bytes; as mob_put8(). */
MOB_INLINE mob_status_t mob_put2(mob_rank_t rank, void* remote, uint16_t value);
/** Puts 1 byte; as mob_put8(). */
MOB_INLINE mob_status_t mob_put1(mob_rank_t rank, void* remote, uint8_t value);

/**
 * Gets one value. Inlined into the caller; an acquire load (see *Ordering* above). A program polls
 * for a put by reading its own rank: `do mob_get8(me, flag, &v); while (v != expected);`.
 *
 * @param rank    the target
 * @param remote  address in the target; an aligned value is read atomically
 * @param value   out: the value
 * @return as mob_get(); MOB_ERR_ARGUMENT also if `value` is null
 *
 * Blocks until the value has arrived. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_get8(mob_rank_t rank, const void* remote, uint64_t* value);
/** Gets 4 bytes; as mob_get8(). */
MOB_INLINE mob_status_t mob_get4(mob_rank_t rank, const void* remote, uint32_t* value);
/** Gets 2 bytes; as mob_get8(). */
MOB_INLINE mob_status_t mob_get2(mob_rank_t rank, const void* remote, uint16_t* value);
/** Gets 1 byte; as mob_get8(). */
MOB_INLINE mob_status_t mob_get1(mob_rank_t rank, const void* remote, uint8_t* value);

/**
 * Waits until every process of the job has called it.
 *
 * Collective over the job. Completes transfers as mob_flush_all() does: puts made before the
 * barrier in the calling thread's context are visible to every process after it. Unlike that flush
 * it does not wait for message handlers. The wait spins briefly, yields, then sleeps (settings
 * MOBIUS_SPIN_NS, MOBIUS_YIELDS), and makes progress.
 *
 * @return MOB_OK; MOB_ERR_STATE (also in a handler); MOB_ERR_PEER (a process died or left the job);
 *         MOB_ERR_MEMORY; or an error of a transfer that mob_flush_all() would return, in which
 *         case the barrier is done
 *
 * Thread safety: single per job: all processes make their collective calls in the same order.
 */
MOB_API mob_status_t mob_barrier(void);

#include <mobius/detail/append_run_inline.h>
#include <mobius/detail/inline.h>

#ifdef __cplusplus
}
#endif
#endif
