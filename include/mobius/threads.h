/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_THREADS_H
#define MOBIUS_THREADS_H

/**
 * @file
 * Ranks as threads of one process, for debuggers and tools that look at one process at a time
 * (ThreadSanitizer, valgrind) and for tests without a launcher.
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Runs a function in several new threads, each of them a rank of one job.
 *
 * In each, `run` calls mob_init() and mob_finalize() as the main function of a process would; every
 * other call acts for the thread's rank. Global variables are shared, as between any threads: a
 * program that keeps its state in them is not fit for this. A thread that `run` starts belongs to
 * no rank, and makes no calls, until it calls mob_threads_act_for().
 *
 * @param size      number of ranks, 1 … 4096
 * @param run       called once per rank
 * @param argument  passed to each call; the caller's
 * @return MOB_OK when all have returned; MOB_ERR_STATE (called inside init … finalize, or by a rank
 *         that is a thread); MOB_ERR_ARGUMENT; MOB_ERR_MEMORY; MOB_ERR_SYSTEM
 *
 * Blocks until all ranks have returned. Thread safety: single.
 */
MOB_API mob_status_t mob_threads_run(mob_rank_t size, void (*run)(void* argument), void* argument);

/**
 * Lets the calling thread act for a rank that is another thread of its process, as a process has
 * further threads that act for it: every later call of the thread is one of that rank.
 *
 * The thread acts for the rank until it ends, or calls this again; it then uses the default
 * context. mob_finalize() is the rank's own thread's, and fails while others act for it.
 *
 * @param rank  number in the job of mob_threads_run(); < 0: none from now on
 * @return MOB_OK;
 *         MOB_ERR_STATE  the calling thread is a rank itself, or runs a handler in a thread of the
 *                        library's;
 *         MOB_ERR_RANK   no thread of this process is that rank, or it is not between mob_init()
 *                        and mob_finalize()
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_threads_act_for(mob_rank_t rank);

#ifdef __cplusplus
}
#endif
#endif
