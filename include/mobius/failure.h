/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_FAILURE_H
#define MOBIUS_FAILURE_H

/**
 * @file
 * Processes that die while the job runs, and how to find out.
 *
 * A rank has died when its process ended (by a signal, or by exit, whatever the code) without
 * mob_finalize(). The setting MOBIUS_ON_DEATH, or `mobius run --on-death`, says what happens then:
 *
 * - `end` (default): the launcher ends the whole job and says in one line which rank died and how.
 * - `error`: the others go on, and the launcher says in one line which rank died. The exit code of
 *   the job is that of the first rank that died or failed. mob_abort() still ends everything.
 *
 * With `error`:
 *
 * - A call that waits for something only a dead rank can do returns MOB_ERR_PEER within a second;
 *   mob_last_error() names the rank. One that got what it waited for may return MOB_OK all the
 *   same, so that a collective call may succeed at some members and fail at others.
 * - A team with a dead member is of no use for collective calls any more: those that failed once
 *   fail at once from then on. Teams without it are not affected, and one-sided calls do not
 *   depend on teams.
 * - Waits that may be satisfied by any rank (mob_counter_wait(), flushes of everything) return
 *   MOB_ERR_PEER while some rank is dead and what they wait for has not come within about 100 ms.
 *   They change nothing then; who knows better calls them again.
 * - The allocations of a dead rank on this host stay where they are until the job ends: puts, gets,
 *   accumulates and atomics on them complete as usual, and mob_mem_address() still answers. What it
 *   was writing when it died may be written in part; an accumulate of it may have reached some
 *   elements and not others, each of at most 8 bytes is old or new. Where messages to it could not
 *   be delivered, each flush of it says so again.
 * - Locks that it held inside the library are taken over by whoever waits for them.
 * - Freeing an allocation with a dead member in its team returns MOB_ERR_PEER; the handle is gone,
 *   and the memory goes when the job ends, because others may still be using it.
 * - mob_finalize() waits for the living only, those of other hosts only if no rank of another host
 *   is lost, and returns MOB_OK. Meet before it who may still be using what you have.
 *
 * A process that is stopped (SIGSTOP, a debugger) is alive: others of its host wait for it. Those
 * of other hosts take it for dead once it has said nothing for MOBIUS_PEER_TIMEOUT_MS (20 seconds
 * by default) while they waited for it, for good; each finds that out by itself.
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Whether a process still takes part in the job.
 *
 * @param rank  any rank of the job
 * @return 1 if it does (also while it waits in mob_finalize()), 0 if it died or has left the job;
 *         MOB_ERR_STATE or MOB_ERR_RANK (negative) on error
 *
 * Looks now, without waiting for anybody: a process that has died and that nobody has noticed yet
 * is asked after, at most every few milliseconds, which costs a system call. A 0 is final.
 *
 * Thread safety: any.
 */
MOB_API int mob_rank_alive(mob_rank_t rank);

#ifdef __cplusplus
}
#endif
#endif
