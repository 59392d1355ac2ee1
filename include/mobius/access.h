/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ACCESS_H
#define MOBIUS_ACCESS_H

/**
 * @file
 * Passive target epochs: shared or exclusive access to the memory of one member of a team, or of
 * all members. The member takes no part.
 *
 * Shared access to a member excludes exclusive access to it, and nothing else. The library does not
 * prevent transfers outside an epoch. A thread that waits for exclusive access comes before those
 * that ask for shared access after it, so neither kind starves.
 *
 * Exclusive access belongs to the calling thread. Shared access is counted per process, and any
 * thread of the process may give it back. A process that has shared access to a member and asks for
 * exclusive access to it deadlocks with itself.
 *
 * **Recovery.** If a process dies or leaves the job, its access is taken back within about 100 ms
 * when another process waits for it. If the access was exclusive, `recovered` tells the next
 * process that gains access. If the member itself dies, processes of other hosts can no longer
 * reach its memory, and their access to it ends in the same way for its local peers.
 *
 * Access to a rank on another host is gained by a message to that rank. The rank's program need not
 * help (with MOBIUS_PROGRESS=poll it must poll or wait in the library). Giving access back does not
 * wait for an answer.
 *
 * While a thread has exclusive access to a rank on another host, its puts to that rank may be
 * delayed until the access ends: even a put without "nb" need not be visible there before
 * mob_access_unlock() or a flush.
 *
 * Ranks are ranks of the job. Compare MPI-4 §12.5.3 (MPI_Win_lock, MPI_Win_lock_all). */

#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Access to the members of a team. The library owns it until mob_access_free(). */
typedef struct mob_access* mob_access_t;

/** The kind of access. */
typedef enum mob_access_mode { MOB_SHARED, MOB_EXCLUSIVE } mob_access_mode_t;

/**
 * Makes an object for access to the members of a team. No process has access at first.
 *
 * Collective over the team: blocks until every member has called it. Takes 4 bytes for each pair of
 * members.
 *
 * @param team    a live team; must not be freed before the object
 * @param access  out: the object
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`access` null),
 *         MOB_ERR_MEMORY, MOB_ERR_PEER (another member failed or died). If one process fails, all
 *         fail, and nothing is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_access_create(mob_team_t team, mob_access_t* access);

/**
 * Frees an object for access. Collective over its team: blocks until every member has called it.
 *
 * @param access  a live object through which no process has access; null does nothing
 * @return MOB_OK; MOB_ERR_STATE (also if a member has access: then every member fails, and nothing
 *         is freed); MOB_ERR_HANDLE; MOB_ERR_PEER (another member failed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_access_free(mob_access_t access);

/**
 * Gains access to a member, and waits for as long as that takes.
 *
 * @param access     a live object
 * @param rank       the member
 * @param mode       shared or exclusive; shared access may be gained several times, and must be
 *                   given back as often
 * @param recovered  out: 1 if a process died while it had exclusive access, else 0; may be null
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread has exclusive access already, or in a
 *         handler, if `rank` is on another host); MOB_ERR_HANDLE; MOB_ERR_RANK (not in the team);
 *         MOB_ERR_ARGUMENT (`mode`); MOB_ERR_PEER (`rank`, on another host, died). After an error
 *         no access was gained.
 *
 * The caller sees everything that other processes did in epochs that excluded this one. Blocks;
 * makes progress while it waits for shared access to end. Thread safety: any.
 */
MOB_API mob_status_t mob_access_lock(mob_access_t access, mob_rank_t rank, mob_access_mode_t mode,
                                     int* recovered);

/**
 * Starts to gain access to a member, for the calling thread's transfers to it. As
 * mob_access_lock(), but may return before the access is gained, as MPI_Win_lock() may. For a
 * member on another host the lock, small transfers and the mob_access_unlock() of the same thread
 * then travel as one message with one answer.
 *
 * The thread's later transfers to `rank` happen with access. The access is certainly gained
 * - when such a transfer is complete: a blocking get has returned, or a mob_flush() or mob_fence()
 *   after a transfer;
 * - before the thread gains or starts any other lock;
 * - before mob_access_unlock() returns.
 *
 * Until then other processes may have access, the thread's puts need not be on their way, flushes
 * of other threads do not complete them, and messages of the program may overtake them. So this
 * lock protects that memory only; it cannot serve as a mutex for anything else.
 *
 * @param access  a live object
 * @param rank    the member
 * @param mode    shared or exclusive; in either mode the calling thread must give the access back
 *                itself, by mob_access_unlock()
 * @return as mob_access_lock(). The call that has to gain the access returns the errors that are
 *         found only then (MOB_ERR_PEER, MOB_ERR_HANDLE); the thread has no access in that case.
 *
 * Does not tell whether a process died while it had access. Blocks at most as mob_access_lock()
 * does. Thread safety: any.
 */
MOB_API mob_status_t mob_access_lock_nbi(mob_access_t access, mob_rank_t rank,
                                         mob_access_mode_t mode);

/**
 * Gains access as mob_access_lock() if that needs no wait; otherwise `*acquired` becomes 0.
 *
 * @param acquired  out: 1 if the caller has access, else 0
 * @return as mob_access_lock(); MOB_ERR_ARGUMENT also if `acquired` is null
 *
 * Does not block, except for the answer of a rank on another host. Access that another process gave
 * back can be gained once a barrier has followed, or a message from that process to `rank`. Thread
 * safety: any.
 */
MOB_API mob_status_t mob_access_trylock(mob_access_t access, mob_rank_t rank,
                                        mob_access_mode_t mode, int* acquired, int* recovered);

/**
 * Gives access to a member back: exclusive access if the calling thread has it, else one shared
 * access of the calling process. The calling thread's transfers to the member are complete there
 * before that. Their errors are returned as mob_flush_all() returns them, and the access is given
 * back even so.
 *
 * @param access  a live object
 * @param rank    the member
 * @return MOB_OK; MOB_ERR_STATE (also without access; in a handler as lock.h says); MOB_ERR_HANDLE;
 *         MOB_ERR_RANK
 *
 * Waits for the calling thread's transfers, not for other processes. Thread safety: any.
 */
MOB_API mob_status_t mob_access_unlock(mob_access_t access, mob_rank_t rank);

/**
 * Gains shared access to every member, and waits for as long as that takes.
 *
 * @param access     a live object
 * @param recovered  as mob_access_lock()
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread has exclusive access to a member);
 *         MOB_ERR_HANDLE; MOB_ERR_PEER (a member on another host died). After an error no access
 *         was gained.
 *
 * Otherwise as mob_access_lock(). Thread safety: any.
 */
MOB_API mob_status_t mob_access_lock_all(mob_access_t access, int* recovered);

/**
 * Gives shared access to every member back.
 *
 * @param access  a live object
 * @return MOB_OK; MOB_ERR_STATE (also if the calling process lacks shared access to a member; then
 *         none was given back); MOB_ERR_HANDLE
 *
 * Waits for the calling thread's transfers, as mob_access_unlock(), for every target. Thread
 * safety: any, but no other thread may give back access through the same object at the same time.
 */
MOB_API mob_status_t mob_access_unlock_all(mob_access_t access);

#ifdef __cplusplus
}
#endif
#endif
