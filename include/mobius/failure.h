/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_FAILURE_H
#define MOBIUS_FAILURE_H

/**
 * @file
 * Processes that die while the job runs, and how to find out.
 *
 * A rank has died when its process ended without mob_finalize(), by a signal or by an exit with any
 * code. The setting MOBIUS_ON_DEATH, or `mobius run --on-death`, decides what follows:
 *
 * - `end` (default): the launcher ends the whole job and says in one line which rank died and how.
 * - `error`: the other ranks continue, and the launcher says in one line which rank died. The exit
 *   code of the job is that of the first rank that died or failed. mob_abort() still ends
 *   everything.
 *
 * With `error`:
 *
 * - A call that waits for something that only a dead rank can do returns MOB_ERR_PEER within a
 *   second; mob_last_error() names the rank. A call that already has what it waited for may still
 *   return MOB_OK, so a collective call can succeed at some members and fail at others.
 * - A team with a dead member can make no more collective calls: once one has failed, later ones
 *   fail at once. mob_team_shrink() makes a team of the members that are alive. Teams without the
 *   dead rank are not affected. One-sided calls do not depend on teams.
 * - Waits that any rank may satisfy (mob_counter_wait(), flushes of all targets) return
 *   MOB_ERR_PEER if a rank is dead and nothing has satisfied them for about 100 ms. They change
 *   nothing then. A caller that knows that the dead rank does not matter calls them again.
 * - The allocations of a dead rank on this host stay until the job ends: puts, gets, accumulates
 *   and atomics on them complete as usual, and mob_mem_address() still answers. A transfer that the
 *   rank was making when it died may be written in part. An accumulate may have reached some
 *   elements and not others; each element of at most 8 bytes is old or new. If messages to the rank
 *   could not be delivered, every flush of it reports that again; calls that free memory do not.
 * - Locks that it held inside the library pass to the next process that waits for them.
 * - Freeing an allocation whose team has a dead member returns MOB_ERR_PEER. The handle is gone;
 *   the memory is released when the job ends, because other processes may still use it.
 * - mob_finalize() waits for living ranks only, and for those of other hosts only if no rank of
 *   another host is lost; it returns MOB_OK. Before calling it, synchronise with every process that
 *   may still use this one's memory.
 *
 * A stopped process (SIGSTOP, a debugger) is alive: its local peers wait for it. A process on
 * another host declares it dead, for good, when it has been silent for MOBIUS_PEER_TIMEOUT_MS (20
 * seconds by default) while that process waited for it. Each process decides this by itself. */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Tells whether a process still takes part in the job.
 *
 * @param rank  any rank of the job
 * @return 1 if it does (also while it waits in mob_finalize()), 0 if it died or has left the job;
 *         MOB_ERR_STATE or MOB_ERR_RANK (negative) on error. A 0 is final.
 *
 * Does not block. To find a death that no process has noticed yet, it makes a system call, at most
 * one every few milliseconds. Thread safety: any.
 */
MOB_API int mob_rank_alive(mob_rank_t rank);

#ifdef __cplusplus
}
#endif
#endif
