/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_EPOCH_H
#define MOBIUS_EPOCH_H

/**
 * @file
 * Access and exposure epochs: synchronisation of origins and targets in pairs, or of all members at
 * once.
 *
 * A target *posts* its memory to a group of origins. An origin *starts* an access epoch to a group
 * of targets, transfers, and *completes* the epoch. The target *waits* until all its origins have
 * completed. When the wait returns, everything that they put in the epoch has arrived. Pairs share
 * no memory, and a call costs work for the ranks that it names, whatever the size of the team.
 *
 * | target              | origin                  | pairs with                    |
 * |---------------------|-------------------------|-------------------------------|
 * | mob_epoch_post()    | mob_epoch_start()       | start waits for each post     |
 * | mob_epoch_wait()    | mob_epoch_complete()    | wait waits for each complete  |
 *
 * A process can be in one access epoch and one exposure epoch of an object at a time, also in both
 * at once, and with itself. An origin that a post names must start an epoch with that target, and a
 * target that a start names must post to that origin. A group may be empty. One thread at a time
 * may call start and complete; one thread (the same or another) may call post, wait and test.
 *
 * Between hosts, the puts of a thread to a target of its access epoch may be delayed until the
 * epoch ends: even a put without "nb" need not be visible there before mob_epoch_complete() or a
 * flush.
 *
 * Ranks are ranks of the job. Compare MPI-4 §12.5.2 (MPI_Win_post, start, complete, wait) and paper
 * 3. */

#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Epochs of a team. The library owns the object from mob_epoch_create() to mob_epoch_free(). */
typedef struct mob_epoch* mob_epoch_t;

/**
 * Makes an object for epochs among the members of a team.
 *
 * Collective over the team: blocks until every member has called it. Takes 8 bytes for each pair of
 * members (64 in teams of up to 64).
 *
 * @param team   a live team; must not be freed before the object
 * @param epoch  out: the object, in no epoch
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`epoch` null),
 *         MOB_ERR_MEMORY, MOB_ERR_PEER (another member failed or died). If one process fails, all
 *         fail, and nothing is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_epoch_create(mob_team_t team, mob_epoch_t* epoch);

/**
 * Frees an object for epochs. Collective over its team: blocks until every member has called it.
 *
 * @param epoch  a live object of which no member is in an epoch; null does nothing
 * @return MOB_OK; MOB_ERR_STATE (also inside an epoch: then every member fails, and nothing is
 *         freed); MOB_ERR_HANDLE; MOB_ERR_PEER (another member failed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_epoch_free(mob_epoch_t epoch);

/**
 * Begins an exposure epoch: exposes the caller's memory to a group of origins, until
 * mob_epoch_wait() or mob_epoch_test() ends it. The origins see everything that the caller wrote to
 * its memory before.
 *
 * @param epoch    a live object
 * @param origins  ranks of the group; the caller owns the array, which is read during the call
 * @param count    number of ranks; with 0, `origins` may be null
 * @return MOB_OK; MOB_ERR_STATE (also in an exposure epoch already); MOB_ERR_HANDLE; MOB_ERR_RANK
 *         (not in the team); MOB_ERR_ARGUMENT (null, negative count, a rank named twice). After an
 *         error no epoch was begun.
 *
 * Does not block. Thread safety: as described for this file.
 */
MOB_API mob_status_t mob_epoch_post(mob_epoch_t epoch, const mob_rank_t* origins, mob_rank_t count);

/**
 * Begins an access epoch to a group of targets, until mob_epoch_complete() ends it. Waits until
 * each target has posted.
 *
 * @param epoch    a live object
 * @param targets  ranks of the group; the caller owns the array, which is read during the call
 * @param count    number of ranks; with 0, `targets` may be null
 * @return as mob_epoch_post(), for access epochs; MOB_ERR_STATE also in a handler, if it would have
 *         to wait; MOB_ERR_PEER (a target died, or waits in mob_finalize() and has not posted: no
 *         epoch was begun)
 *
 * Blocks, makes progress. Thread safety: as described for this file.
 */
MOB_API mob_status_t mob_epoch_start(mob_epoch_t epoch, const mob_rank_t* targets,
                                     mob_rank_t count);

/**
 * Ends the access epoch. The calling thread's puts of the epoch, in any context, are complete at
 * the targets before their wait returns. Earlier puts of other threads to targets of the epoch, in
 * any context (context.h), are too; the call waits until those transfers are complete.
 *
 * @param epoch  a live object
 * @return MOB_OK; MOB_ERR_STATE (also outside an access epoch, or in a handler, where the epoch
 *         continues); MOB_ERR_HANDLE; or an error of a transfer that mob_flush_all() would return,
 *         in which case the epoch has ended. Errors of transfers in contexts that the calling
 *         thread does not use are left to the flushes of those contexts.
 *
 * Blocks for transfers of the calling process, not for calls of the targets. Thread safety: as
 * described for this file.
 */
MOB_API mob_status_t mob_epoch_complete(mob_epoch_t epoch);

/**
 * Ends the exposure epoch: waits until each of its origins has completed its access.
 *
 * @param epoch  a live object
 * @return MOB_OK; MOB_ERR_STATE (also outside an exposure epoch, or in a handler, if it would have
 *         to wait: the epoch continues); MOB_ERR_HANDLE; MOB_ERR_PEER (an origin died, or waits in
 *         mob_finalize() and has not completed; the epoch has ended, with the puts of the other
 *         origins)
 *
 * Blocks, makes progress. Thread safety: as described for this file.
 */
MOB_API mob_status_t mob_epoch_wait(mob_epoch_t epoch);

/**
 * Ends the exposure epoch if each of its origins has completed its access.
 *
 * @param epoch  a live object
 * @param done   out: 1 if the epoch has ended, else 0
 * @return as mob_epoch_wait(), but never MOB_ERR_PEER; MOB_ERR_ARGUMENT (`done` null)
 *
 * Does not block; makes progress. Thread safety: as described for this file.
 */
MOB_API mob_status_t mob_epoch_test(mob_epoch_t epoch, int* done);

/**
 * Separates the operations of a team before it from those after it. Completes the transfers of the
 * calling process, in any context, then waits until every member has called it. The caller then
 * sees everything that members put into its memory before.
 *
 * The caller's own puts are visible at a target to everything that the caller does there after its
 * fence. Other processes see them once the target's fence has returned too (MPI-4 §12.5.1,
 * MPI_Win_fence). In a job of two processes on two hosts the fence therefore need not wait for
 * answers. Where every process must see the puts at once, call mob_barrier().
 *
 * @param epoch  a live object
 * @return MOB_OK; MOB_ERR_STATE (also inside an access or exposure epoch of the object, where the
 *         call takes part all the same; not in a handler, where it does not); MOB_ERR_HANDLE;
 *         MOB_ERR_PEER (a member died); or an error of a transfer that mob_flush_all() would
 *         return, in which case the call has taken part
 *
 * Collective over the team, blocks, makes progress. Thread safety: per team.
 */
MOB_API mob_status_t mob_epoch_fence(mob_epoch_t epoch);

#ifdef __cplusplus
}
#endif
#endif
