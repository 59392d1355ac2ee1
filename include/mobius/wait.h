/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_WAIT_H
#define MOBIUS_WAIT_H

/**
 * @file
 * Waiting for words of the own memory that other processes change, and notifications.
 *
 * A word is an aligned integer of 4 or 8 bytes that the caller can read; functions are named after
 * its type (`i4`, `u4`, `i8`, `u8`: signed or unsigned, bytes). It may be changed by any one-sided
 * operation. What its writer did before the change is visible to who has waited for it, if the
 * writer ordered it so (mob_fence(), a signal, a counter).
 *
 * **How soon.** A waiting call spins, then yields (settings MOBIUS_SPIN_NS, MOBIUS_YIELDS), then
 * sleeps. Operations that tell the target (signals, counters, notifications, accumulates, messages)
 * wake it at once. A plain put does not, so that it costs no more than its store; a sleeper looks
 * for it by itself, at first after 50 µs, then ever more seldom, at most 1 ms apart: it is late by
 * about an eighth of what it has waited already.
 *
 * **Who else waits.** Every call here makes progress. A call that waits returns MOB_ERR_PEER, at
 * the earliest after 100 ms, when a host-mate has died: it cannot know which process was to change
 * the word. Who knows better waits again.
 *
 * Compare OpenSHMEM 1.5 §9.10 (shmem_wait_until, shmem_test and their kin), paper 5 and
 * ARMCI_Notify.
 */

#include <mobius/rma.h>
#include <mobius/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a word is compared with a value: `word == value`, `word != value`, `word > value`, …  */
typedef enum mob_compare { MOB_EQ, MOB_NE, MOB_GT, MOB_GE, MOB_LT, MOB_LE } mob_compare_t;

enum { MOB_COMPARE_COUNT = MOB_LE + 1 };

/**
 * Waits until a word compares with a value as asked. Inlined: one load when it does already.
 *
 * @param word     aligned memory of the caller
 * @param compare  how
 * @param value    what with
 * @return MOB_OK (the word was seen to fulfil the condition; an acquire load), MOB_ERR_STATE,
 *         MOB_ERR_ARGUMENT (`word` null or not aligned, `compare` unknown), MOB_ERR_PEER (see
 *         above)
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_wait_until_i4(const int32_t* word, mob_compare_t compare,
                                          int32_t value);
/** As mob_wait_until_i4(), unsigned. */
MOB_INLINE mob_status_t mob_wait_until_u4(const uint32_t* word, mob_compare_t compare,
                                          uint32_t value);
/** As mob_wait_until_i4(), 8 bytes. */
MOB_INLINE mob_status_t mob_wait_until_i8(const int64_t* word, mob_compare_t compare,
                                          int64_t value);
/** As mob_wait_until_i4(), 8 bytes, unsigned. */
MOB_INLINE mob_status_t mob_wait_until_u8(const uint64_t* word, mob_compare_t compare,
                                          uint64_t value);

/**
 * Asks whether a word compares with a value as asked.
 *
 * @param word, compare, value  as mob_wait_until_i4()
 * @param done                  out: 1 if so, else 0
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (also `done` null)
 *
 * Does not block; makes progress when the answer is no. Thread safety: any.
 */
MOB_INLINE mob_status_t mob_test_until_i4(const int32_t* word, mob_compare_t compare, int32_t value,
                                          int* done);
/** As mob_test_until_i4(), unsigned. */
MOB_INLINE mob_status_t mob_test_until_u4(const uint32_t* word, mob_compare_t compare,
                                          uint32_t value, int* done);
/** As mob_test_until_i4(), 8 bytes. */
MOB_INLINE mob_status_t mob_test_until_i8(const int64_t* word, mob_compare_t compare, int64_t value,
                                          int* done);
/** As mob_test_until_i4(), 8 bytes, unsigned. */
MOB_INLINE mob_status_t mob_test_until_u8(const uint64_t* word, mob_compare_t compare,
                                          uint64_t value, int* done);

/** Several words and what is asked of each. Everything is the caller's and read during the call. */
typedef struct mob_wait_set {
  const void* words;     /**< `count` words, one after the other; may be null if `count` is 0 */
  size_t count;          /**< how many */
  mob_type_t type;       /**< MOB_INT32, MOB_UINT32, MOB_INT64 or MOB_UINT64 */
  mob_compare_t compare; /**< how */
  const void* values;    /**< of the words' type: `count` values, one for each word, or just one */
  int one_value;         /**< not 0: `values` is one value, for all words */
  const int* excluded;   /**< `count` flags: words whose flag is not 0 are passed over; or null */
} mob_wait_set_t;

/**
 * Waits until every word of a set has fulfilled its condition (each at some time of the call).
 *
 * @param set  the words; a set with none that counts returns at once
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null, unaligned words, a type or comparison that
 *         is not one of those listed), MOB_ERR_RANGE (`count` overflows), MOB_ERR_PEER
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_wait_until_all(const mob_wait_set_t* set);

/**
 * Waits until a word of a set fulfils its condition.
 *
 * @param set    the words
 * @param index  out: which; `count` if no word counts
 * @return as mob_wait_until_all()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_wait_until_any(const mob_wait_set_t* set, size_t* index);

/**
 * Waits until at least one word of a set fulfils its condition.
 *
 * @param set      the words
 * @param indices  out: which do, in ascending order; room for `count`
 * @param found    out: how many do; 0 if no word counts
 * @return as mob_wait_until_all()
 *
 * Blocks, makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_wait_until_some(const mob_wait_set_t* set, size_t* indices, size_t* found);

/**
 * Asks whether every word of a set fulfils its condition.
 *
 * @param set   the words
 * @param done  out: 1 if so (also if no word counts), else 0
 * @return as mob_wait_until_all(), never MOB_ERR_PEER
 *
 * Does not block; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_test_until_all(const mob_wait_set_t* set, int* done);

/** As mob_wait_until_any(), without waiting: `*index` is `count` also if no word fulfils its
 *  condition. Does not block; makes progress. Thread safety: any. */
MOB_API mob_status_t mob_test_until_any(const mob_wait_set_t* set, size_t* index);

/** As mob_wait_until_some(), without waiting: `*found` is 0 also if no word fulfils its condition.
 *  Does not block; makes progress. Thread safety: any. */
MOB_API mob_status_t mob_test_until_some(const mob_wait_set_t* set, size_t* indices, size_t* found);

/**
 * Notifies a process: counts up what it waits for in mob_notify_wait(). Earlier puts of the calling
 * thread to it are visible to who has waited for the notification.
 *
 * @param rank  whom; may be the caller
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK, MOB_ERR_MEMORY (at the first use of a pair only),
 *         and what a mob_flush_all() would return (in a handler also MOB_ERR_STATE). After an error
 *         nobody was notified.
 *
 * Does not block, except for transfers of the calling thread that are under way. Thread safety:
 * any.
 */
MOB_API mob_status_t mob_notify(mob_rank_t rank);

/**
 * Waits for one more notification from a process. Each is waited for once: of several threads that
 * wait for one process, as many go on as notifications come.
 *
 * @param rank   who notifies; may be the caller
 * @param count  out: how many from it have been waited for, this one included (modulo 2^32); may be
 *               null
 * @return MOB_OK; MOB_ERR_STATE (also in a handler, if it would have to wait); MOB_ERR_RANK;
 *         MOB_ERR_MEMORY (at the first use of a pair only); MOB_ERR_PEER (`rank` died or left the
 *         job, and no notification is left). A rank that waits in mob_finalize() still runs
 *         handlers, which may notify: it is waited for.
 *
 * Blocks, makes progress; woken at once. Thread safety: any.
 */
MOB_API mob_status_t mob_notify_wait(mob_rank_t rank, uint32_t* count);

#include <mobius/detail/wait_inline.h>

#ifdef __cplusplus
}
#endif
#endif
