/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ACCESS_H
#define MOBIUS_ACCESS_H

/**
 * @file
 * Passive target epochs: shared or exclusive access to the memory of one member of a team, or of
 * all, without its taking part.
 *
 * Shared access to a member excludes exclusive access to it and nothing else. Nothing stops a
 * transfer outside an epoch. Who waits for exclusive access holds up those who ask for shared
 * access after it, so that neither kind starves.
 *
 * Exclusive access belongs to the calling thread; shared access is counted per process, and a
 * thread of the same process may give it back. A process that has shared access to a member and
 * asks for exclusive access to it waits for itself.
 *
 * **Recovery.** The access of a process that died, or left the job, is taken back when somebody
 * waits for it, within about 100 ms. If it was exclusive, the next to gain access is told by
 * `recovered`. When the member itself dies, access that processes of other hosts have to it, whose
 * memory they do not reach any more, ends in the same way for its host-mates.
 *
 * Access to a rank on another host is gained by a message to it, which needs no help of its program
 * (MOBIUS_PROGRESS=poll: it polls or waits in the library), and given back without waiting for an
 * answer.
 *
 * What a thread puts to a rank on another host while it has exclusive access to it may wait for the
 * end of that: a put without "nb", too, need not be seen there before mob_access_unlock(), or a
 * flush.
 *
 * Ranks are those of the world. Compare MPI-4 §12.5.3 (MPI_Win_lock, MPI_Win_lock_all).
 */

#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Access to the members of a team. Owned by the library until mob_access_free(). */
typedef struct mob_access* mob_access_t;

/** Kind of access. */
typedef enum mob_access_mode { MOB_SHARED, MOB_EXCLUSIVE } mob_access_mode_t;

/**
 * Makes an object for access to the members of a team, to which nobody has access yet.
 *
 * Collective over the team, blocks until every member called it. Takes 4 bytes for each pair of
 * members.
 *
 * @param team    a live team, not to be freed before the object
 * @param access  out: the object
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`access` null),
 *         MOB_ERR_MEMORY, MOB_ERR_PEER (it failed at, or died in, another member). If one process
 *         fails, all fail, and nothing is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_access_create(mob_team_t team, mob_access_t* access);

/**
 * Frees an object for access. Collective over its team, blocks until every member called it.
 *
 * @param access  live, and nobody has access by it; null does nothing
 * @return MOB_OK; MOB_ERR_STATE (also if a member has access: every member fails then, and nothing
 *         is freed); MOB_ERR_HANDLE; MOB_ERR_PEER (another member failed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_access_free(mob_access_t access);

/**
 * Gains access to a member; waits for as long as that takes.
 *
 * @param access     a live object
 * @param rank       whose memory
 * @param mode       which kind; shared access may be gained several times, and is to be given back
 *                   as often
 * @param recovered  out: 1 if a process died while it had exclusive access, else 0; may be null
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread has exclusive access already, or in a
 *         handler, if `rank` is on another host); MOB_ERR_HANDLE; MOB_ERR_RANK (not in the team);
 *         MOB_ERR_ARGUMENT (`mode`); MOB_ERR_PEER (`rank`, on another host, died)
 *
 * What others did in epochs that excluded this one is visible after. Blocks, makes progress when it
 * waits for shared access to end. Thread safety: any.
 */
MOB_API mob_status_t mob_access_lock(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode,
                                     int* recovered);

/**
 * Starts to gain access to a member, for the calling thread's transfers to it: as
 * mob_access_lock(), but may return before there is access, as MPI_Win_lock() may. To a member on
 * another host the lock, small transfers and the mob_access_unlock() of the same thread then are
 * one message, and one answer.
 *
 * What the thread transfers to `rank` after it happens with access. Access is there when something
 * that the thread transferred so is complete: a blocking get has returned, or a mob_flush() or
 * mob_fence() after a transfer; before the thread gains or starts any other lock; and once before
 * mob_access_unlock() returns. Until then others may have access, what is put need not
 * be on its way, flushes of other threads do not complete it, and messages of the program may
 * overtake it. So it does not exclude others from anything but that memory, as a mutex would.
 *
 * @param access  a live object
 * @param rank    whose memory
 * @param mode    which kind; of either, the calling thread gives it back, by mob_access_unlock()
 * @return as mob_access_lock(); what cannot be found out yet (MOB_ERR_PEER, MOB_ERR_HANDLE) the
 *         call returns that has to gain it; the thread has no access then
 *
 * That a process died while it had access is not told. Blocks at most as mob_access_lock() does.
 * Thread safety: any.
 */
MOB_API mob_status_t mob_access_lock_nbi(mob_access_t access, mob_rank_t rank,
                                         mob_access_mode_t mode);

/** As mob_access_lock() if it need not wait, otherwise `*acquired` becomes 0. MOB_ERR_ARGUMENT if
 *  `acquired` is null. Does not block but for the answer of a rank on another host. What another
 *  process gave back can be gained after a barrier in between, or a message from it to `rank`.
 *  Thread safety: any. */
MOB_API mob_status_t mob_access_trylock(mob_access_t access, mob_rank_t rank,
                                        mob_access_mode_t mode, int* acquired, int* recovered);

/**
 * Gives access to a member back: exclusive access if the calling thread has it, else one shared
 * access of the calling process. Transfers of the calling thread to it are complete there before
 * (their errors are those of mob_flush_all(), and are returned with the access given back).
 *
 * @return MOB_OK; MOB_ERR_STATE (also without access; in a handler as lock.h says); MOB_ERR_HANDLE;
 *         MOB_ERR_RANK
 *
 * Does not wait for others. Thread safety: any.
 */
MOB_API mob_status_t mob_access_unlock(mob_access_t access, mob_rank_t rank);

/**
 * Gains shared access to every member.
 *
 * @param access     a live object
 * @param recovered  as mob_access_lock()
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread has exclusive access to a member);
 *         MOB_ERR_HANDLE; MOB_ERR_PEER (a member on another host died). After an error no access
 *         was gained.
 *
 * As mob_access_lock().
 */
MOB_API mob_status_t mob_access_lock_all(mob_access_t access, int* recovered);

/**
 * Gives shared access to every member back.
 *
 * @return MOB_OK; MOB_ERR_STATE (also if the calling process lacks shared access to a member; none
 *         was given back then); MOB_ERR_HANDLE
 *
 * As mob_access_unlock(), for every target. Thread safety: any, but no other thread gives access by
 * the same object back meanwhile.
 */
MOB_API mob_status_t mob_access_unlock_all(mob_access_t access);

#ifdef __cplusplus
}
#endif
#endif
