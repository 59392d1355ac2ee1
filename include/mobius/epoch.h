/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_EPOCH_H
#define MOBIUS_EPOCH_H

/**
 * @file
 * Access and exposure epochs: synchronisation of origins and targets in pairs, or of all at once.
 *
 * A target *posts* its memory to a group of origins; an origin *starts* an access epoch to a group
 * of targets, transfers, and *completes* it; the target *waits* for all its origins to have done
 * so. When the wait returns, everything that they put in the epoch is there. The calls of different
 * pairs do not touch each other's memory, and cost work for the ranks that they name, whatever the
 * size of the team.
 *
 * | target              | origin                  | pairs with                    |
 * |---------------------|-------------------------|-------------------------------|
 * | mob_epoch_post()    | mob_epoch_start()       | start waits for each post     |
 * | mob_epoch_wait()    | mob_epoch_complete()    | wait waits for each complete  |
 *
 * A process can be in one access and in one exposure epoch of an object at a time, in both at once
 * also with itself. An origin that is named in a post must start an epoch with that target, and the
 * other way round; a group may be empty. One thread at a time may call start and complete, and one
 * (the same or another) post, wait and test.
 *
 * Between hosts what a thread puts to a target of its access epoch may wait for the end of that: a
 * put without "nb", too, need not be seen there before mob_epoch_complete(), or a flush.
 *
 * Ranks are those of the world. Compare MPI-4 §12.5.2 (MPI_Win_post, start, complete, wait) and
 * paper 3.
 */

#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Epochs of a team. Owned by the library from mob_epoch_create() to mob_epoch_free(). */
typedef struct mob_epoch* mob_epoch_t;

/**
 * Makes an object for epochs among the members of a team.
 *
 * Collective over the team, blocks until every member called it. Takes 8 bytes for each pair of
 * members (64 in teams of up to 64).
 *
 * @param team   a live team, not to be freed before the object
 * @param epoch  out: the object, in no epoch
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`epoch` null),
 *         MOB_ERR_MEMORY, MOB_ERR_PEER (it failed at, or died in, another member). If one process
 *         fails, all fail, and nothing is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_epoch_create(mob_team_t team, mob_epoch_t* epoch);

/**
 * Frees an object for epochs. Collective over its team, blocks until every member called it.
 *
 * @param epoch  live, and no member in an epoch of it; null does nothing
 * @return MOB_OK; MOB_ERR_STATE (also inside an epoch: every member fails then, and nothing is
 *         freed); MOB_ERR_HANDLE; MOB_ERR_PEER (another member failed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_epoch_free(mob_epoch_t epoch);

/**
 * Exposes the caller's memory to a group of origins, until mob_epoch_wait() or mob_epoch_test().
 *
 * @param epoch    a live object
 * @param origins  ranks of the group; the caller's, read during the call
 * @param count    how many; with 0, `origins` may be null
 * @return MOB_OK; MOB_ERR_STATE (also in an exposure epoch already); MOB_ERR_HANDLE; MOB_ERR_RANK
 *         (not in the team); MOB_ERR_ARGUMENT (null, negative count, a rank named twice). After an
 *         error no epoch was begun.
 *
 * What the caller wrote to its memory before is visible to the origins. Does not block.
 */
MOB_API mob_status_t mob_epoch_post(mob_epoch_t epoch, const mob_rank_t* origins, mob_rank_t count);

/**
 * Begins access to a group of targets, until mob_epoch_complete(); waits until each has posted.
 *
 * @param epoch    a live object
 * @param targets  ranks of the group; the caller's, read during the call
 * @param count    how many; with 0, `targets` may be null
 * @return as mob_epoch_post(), for access epochs; MOB_ERR_STATE also in a handler, if it would have
 *         to wait; MOB_ERR_PEER (a target died, or waits in mob_finalize() and has not posted: no
 *         epoch was begun)
 *
 * Blocks, makes progress.
 */
MOB_API mob_status_t mob_epoch_start(mob_epoch_t epoch, const mob_rank_t* targets,
                                     mob_rank_t count);

/**
 * Ends the access epoch: what the calling thread put in it, in whatever context, is complete at the
 * targets before their wait returns. So is what other threads put in it before, in any context
 * (context.h): these have to come to rest for that, as far as the targets of the epoch go.
 *
 * @return MOB_OK, MOB_ERR_STATE (also outside an access epoch, or in a handler, where the epoch
 *         goes on), MOB_ERR_HANDLE
 *
 * Also returns what a mob_flush_all() of transfers would; the epoch has ended then as well. Errors
 * of transfers in contexts that the calling thread does not use are left to the flushes of those.
 * Does not wait for the targets.
 */
MOB_API mob_status_t mob_epoch_complete(mob_epoch_t epoch);

/**
 * Ends the exposure epoch: waits until each of its origins has completed its access.
 *
 * @return MOB_OK; MOB_ERR_STATE (also outside an exposure epoch, or in a handler, if it would have
 *         to wait: the epoch goes on); MOB_ERR_HANDLE; MOB_ERR_PEER (an origin died, or waits in
 *         mob_finalize() and has not completed; the epoch has ended, with what the others put)
 *
 * Blocks, makes progress.
 */
MOB_API mob_status_t mob_epoch_wait(mob_epoch_t epoch);

/**
 * Ends the exposure epoch if each of its origins has completed its access.
 *
 * @param epoch  a live object
 * @param done   out: 1 if the epoch has ended, else 0
 * @return as mob_epoch_wait(), never MOB_ERR_PEER; MOB_ERR_ARGUMENT (`done` null)
 *
 * Does not block; makes progress.
 */
MOB_API mob_status_t mob_epoch_test(mob_epoch_t epoch, int* done);

/**
 * Ends what every member of the team did since the fence before: completes the transfers of the
 * calling process, in whatever context, then waits until every member called it. What members put
 * into the caller's memory before is visible after. What the caller put may be looked for at a
 * target by whatever the caller does there after its fence, and by others when the target's fence
 * has returned, too (MPI-4 §12.5.1, MPI_Win_fence); where it has to be there for everybody at once,
 * take mob_barrier(). So the fence need not wait for answers in a job of two processes on two
 * hosts.
 *
 * @return MOB_OK; MOB_ERR_STATE (also inside an access or exposure epoch of the object: the call
 *         takes part all the same; in a handler it does not); MOB_ERR_HANDLE; MOB_ERR_PEER (a
 * member died); or what a mob_flush_all() of transfers would return, the call having taken part
 *
 * Collective over the team, blocks, makes progress. Thread safety: per team.
 */
MOB_API mob_status_t mob_epoch_fence(mob_epoch_t epoch);

#ifdef __cplusplus
}
#endif
#endif
