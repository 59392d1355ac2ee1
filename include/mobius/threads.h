/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_THREADS_H
#define MOBIUS_THREADS_H

/**
 * @file
 * Ranks as threads of one process, for debuggers and tools that look at one process at a time
 * (ThreadSanitizer, valgrind), and for tests without a launcher. */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Runs a function in several new threads, each of which is one rank of a job.
 *
 * In each thread, `run` calls mob_init() and mob_finalize() as the main function of a process
 * would. Every other call acts for the rank of its thread. The threads share global variables, so a
 * program that keeps a rank's state in global variables cannot run this way. A thread that `run`
 * starts belongs to no rank and must make no calls until it calls mob_threads_act_for().
 *
 * @param size      number of ranks, 1 … 4096
 * @param run       called once per rank
 * @param argument  passed to each call; the caller owns it
 * @return MOB_OK when all threads have returned; MOB_ERR_STATE (called inside init … finalize, or
 *         by a rank that is a thread); MOB_ERR_ARGUMENT; MOB_ERR_MEMORY; MOB_ERR_SYSTEM
 *
 * Blocks until all ranks have returned. Thread safety: single.
 */
MOB_API mob_status_t mob_threads_run(mob_rank_t size, void (*run)(void* argument), void* argument);

/**
 * Lets the calling thread act for a rank that is another thread of its process: every later call of
 * the thread is a call of that rank. A process of one rank has such further threads without this
 * call.
 *
 * The thread acts for the rank until it ends or calls this function again. It starts with the
 * default context. Only the rank's own thread may call mob_finalize(), which fails while other
 * threads act for the rank.
 *
 * @param rank  rank in the job of mob_threads_run(); negative: no rank from now on
 * @return MOB_OK;
 *         MOB_ERR_STATE  the calling thread is itself a rank, or is a thread of the library that
 *                        runs a handler;
 *         MOB_ERR_RANK   no thread of this process is that rank, or the rank is not between
 *                        mob_init() and mob_finalize()
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_threads_act_for(mob_rank_t rank);

#ifdef __cplusplus
}
#endif
#endif
