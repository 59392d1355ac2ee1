/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_WAIT_H
#define MOBIUS_WAIT_H

/**
 * @file
 * Waiting for words of the caller's own memory that other processes change, and notifications.
 *
 * A word is an aligned integer of 4 or 8 bytes that the caller can read. Functions are named after
 * its type (`i4`, `u4`, `i8`, `u8`: signed or unsigned, bytes). Any one-sided operation may change
 * it. A caller that has waited for the change sees everything that the writer did before it, if the
 * writer ordered it so (mob_fence(), a signal, a counter).
 *
 * **Latency.** A waiting call spins, then yields (settings MOBIUS_SPIN_NS, MOBIUS_YIELDS), then
 * sleeps. Operations that inform the target (signals, counters, notifications, accumulates,
 * messages) wake it at once. A plain put does not wake it, so that the put costs no more than its
 * store. A sleeping call therefore looks for plain puts by itself, first after 50 µs, then at
 * growing intervals of at most 1 ms: it is late by about an eighth of the time it has waited.
 *
 * **Progress and dead ranks.** Every call here makes progress. A call that waits returns
 * MOB_ERR_PEER, at the earliest after 100 ms, when a local peer has died: it cannot know which
 * process was to change the word. A caller that knows that the dead rank does not matter waits
 * again.
 *
 * Compare OpenSHMEM 1.5 §9.10 (shmem_wait_until, shmem_test and related calls), paper 5 and
 * ARMCI_Notify. */

#include <mobius/rma.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A comparison of a word with a value: `word == value`, `word != value`, `word > value`, … */
typedef enum mob_compare { MOB_EQ, MOB_NE, MOB_GT, MOB_GE, MOB_LT, MOB_LE } mob_compare_t;

enum { MOB_COMPARE_COUNT = MOB_LE + 1 /**< how many comparisons there are */ };

/**
 * Waits until the comparison of a word with a value holds. Inlined: one load when it holds already.
 *
 * @param word     aligned memory of the caller
 * @param compare  the comparison
 * @param value    the value to compare with
 * @return MOB_OK (the comparison held; the read is an acquire load), MOB_ERR_STATE,
 *         MOB_ERR_ARGUMENT (`word` null or not aligned, `compare` unknown), MOB_ERR_PEER (see
 *         above)
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_wait_until_i4(const int32_t* word, mob_compare_t compare,
                                          int32_t value);
/** Waits as mob_wait_until_i4(), unsigned. */
MOB_INLINE mob_status_t mob_wait_until_u4(const uint32_t* word, mob_compare_t compare,
                                          uint32_t value);
/** Waits as mob_wait_until_i4(), 8 bytes. */
MOB_INLINE mob_status_t mob_wait_until_i8(const int64_t* word, mob_compare_t compare,
                                          int64_t value);
/** Waits as mob_wait_until_i4(), 8 bytes, unsigned. */
MOB_INLINE mob_status_t mob_wait_until_u8(const uint64_t* word, mob_compare_t compare,
                                          uint64_t value);

/**
 * Tests whether the comparison of a word with a value holds.
 *
 * @param word, compare, value  as mob_wait_until_i4()
 * @param done                  out: 1 if it holds, else 0
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (also `done` null)
 *
 * Does not block; makes progress if the comparison does not hold. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_test_until_i4(const int32_t* word, mob_compare_t compare, int32_t value,
                                          int* done);
/** Tests as mob_test_until_i4(), unsigned. */
MOB_INLINE mob_status_t mob_test_until_u4(const uint32_t* word, mob_compare_t compare,
                                          uint32_t value, int* done);
/** Tests as mob_test_until_i4(), 8 bytes. */
MOB_INLINE mob_status_t mob_test_until_i8(const int64_t* word, mob_compare_t compare, int64_t value,
                                          int* done);
/** Tests as mob_test_until_i4(), 8 bytes, unsigned. */
MOB_INLINE mob_status_t mob_test_until_u8(const uint64_t* word, mob_compare_t compare,
                                          uint64_t value, int* done);

/**
 * Several words and a comparison for each. The caller owns everything; it is read during the call.
 */
typedef struct mob_wait_set {
  const void* words;     /**< `count` consecutive words; may be null if `count` is 0 */
  size_t count;          /**< number of words */
  mob_type_t type;       /**< MOB_INT32, MOB_UINT32, MOB_INT64 or MOB_UINT64 */
  mob_compare_t compare; /**< the comparison */
  const void* values; /**< of the words' type: `count` values, one for each word, or a single one */
  int one_value;      /**< not 0: `values` is a single value, for all words */
  const int* excluded; /**< `count` flags: words whose flag is not 0 are ignored; or null */
} mob_wait_set_t;

/**
 * Waits until the comparison of every word of a set has held at some time during the call.
 *
 * @param set  the words; if all words are ignored, or there are none, the call returns at once
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null, unaligned words, an unknown type or
 *         comparison), MOB_ERR_RANGE (`count` overflows), MOB_ERR_PEER
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_wait_until_all(const mob_wait_set_t* set);

/**
 * Waits until the comparison of one word of a set holds.
 *
 * @param set    the words
 * @param index  out: the index of that word; `count` if all words are ignored
 * @return as mob_wait_until_all()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_wait_until_any(const mob_wait_set_t* set, size_t* index);

/**
 * Waits until the comparison of at least one word of a set holds.
 *
 * @param set      the words
 * @param indices  out: indices of the words for which it holds, in ascending order; room for
 *                 `count`
 * @param found    out: number of indices; 0 if all words are ignored
 * @return as mob_wait_until_all()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_wait_until_some(const mob_wait_set_t* set, size_t* indices, size_t* found);

/**
 * Tests whether the comparison of every word of a set holds.
 *
 * @param set   the words
 * @param done  out: 1 if it does (also if all words are ignored), else 0
 * @return as mob_wait_until_all(), but never MOB_ERR_PEER
 *
 * Does not block; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_test_until_all(const mob_wait_set_t* set, int* done);

/**
 * Tests as mob_wait_until_any(), without waiting: `*index` is `count` also if no comparison holds.
 * Does not block; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_test_until_any(const mob_wait_set_t* set, size_t* index);

/**
 * Tests as mob_wait_until_some(), without waiting: `*found` is 0 also if no comparison holds. Does
 * not block; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_test_until_some(const mob_wait_set_t* set, size_t* indices, size_t* found);

/**
 * Sets a function that the calling thread runs repeatedly during its waits in the library, after it
 * has spun for MOBIUS_SPIN_NS, and now and then while it serves others' requests all the time. For
 * a program whose other communication library makes progress only when this thread calls it. A
 * thread that sleeps in a wait wakes up for the function: at first after 50 µs, later less often,
 * and at least once per millisecond.
 *
 * @param call      the function, or null for none (the default). It must not call this library,
 * wait, throw, or leave by longjmp()
 * @param argument  passed to `call`
 *
 * Local, does not block. Callable at any time. Thread safety: any; the setting belongs to the
 * calling thread.
 */
MOB_API void mob_wait_hook(void (*call)(void* argument), void* argument);

/**
 * Notifies a process: adds 1 to the notifications that it awaits with mob_notify_wait(). A process
 * that has waited for the notification sees the calling thread's earlier puts to it.
 *
 * @param rank  the process to notify; may be the caller
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK, MOB_ERR_MEMORY (only at the first use of a pair),
 *         and the errors of mob_flush_all() (in a handler also MOB_ERR_STATE). After an error no
 *         process was notified.
 *
 * Does not block, except for transfers of the calling thread that are under way. Thread safety:
 * any.
 */
MOB_API mob_status_t mob_notify(mob_rank_t rank);

/**
 * Waits for one more notification from a process. Each notification ends one wait: of several
 * threads that wait for one process, as many continue as notifications come.
 *
 * @param rank   the process that notifies; may be the caller
 * @param count  out: number of its notifications that have been waited for, this one included
 *               (modulo 2^32); may be null
 * @return MOB_OK; MOB_ERR_STATE (also in a handler, if it would have to wait); MOB_ERR_RANK;
 *         MOB_ERR_MEMORY (only at the first use of a pair); MOB_ERR_PEER (`rank` died or left the
 *         job, and no notification is left). A rank that waits in mob_finalize() still runs
 *         handlers, which may notify, so the call goes on waiting for it.
 *
 * Blocks, makes progress. A notification wakes it at once. Thread safety: any.
 */
MOB_API mob_status_t mob_notify_wait(mob_rank_t rank, uint32_t* count);

#include <mobius/detail/wait_inline.h>

#ifdef __cplusplus
}
#endif
#endif
