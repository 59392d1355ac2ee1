/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_LOCK_H
#define MOBIUS_LOCK_H

/**
 * @file
 * Mutual exclusion: locks in shared memory, mutexes of a team, and shared or exclusive access to
 * the members of a team.
 *
 * All of them exclude threads of one process, processes and handlers alike (paper 5, §2), and
 * belong to the thread that acquired them. Who releases one flushes first (mob_flush_all(); its
 * errors are returned too, with the lock released). So is MOB_ERR_STATE to a handler, which must
 * not wait for transfers under way: whoever has the lock next may not see them yet. Who waits
 * spins, then yields, then sleeps; throughput comes first, but nobody who waits is passed over for
 * more than some 10 ms.
 *
 * Locks in shared memory are for host-mates. A mutex of a rank on another host is acquired by a
 * message to that rank, which needs no help of its program (MOBIUS_PROGRESS=poll: it polls or waits
 * in the library), and is released without waiting for an answer. Of a rank on another host that
 * died nothing can be acquired any more (MOB_ERR_PEER).
 *
 * **Recovery.** When a process dies, or leaves the job, while it holds one of them, the next who
 * wants it gets it, within about 100 ms, and is told so by `recovered`: what the lock protects may
 * have been changed halfway. So it is when the rank dies that hosts a mutex which a process of
 * another host holds: that one cannot give it back, and may not know yet that it has lost it. A
 * thread that ends while its process goes on must have released all.
 */

#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A lock that lies in shared memory. Free when all its bytes are 0, as fresh allocations are; the
 * memory may be given away only while it is free.
 */
typedef struct mob_lock_word {
  uint64_t state_; /**< the library's */
} mob_lock_t;

/**
 * Acquires a lock; waits for as long as that takes.
 *
 * @param lock       in any allocation of any host-mate, or in memory that it exposed with
 *                   MOB_EXPOSE_REMAP, as seen by the caller (mob_ptr())
 * @param recovered  out: 1 if the former owner died while it held the lock, else 0; may be null
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize, or the calling thread holds it already;
 *         MOB_ERR_ARGUMENT  null, or not aligned to 8 bytes;
 *         MOB_ERR_RANGE     not in shared memory
 *
 * What former owners did before they released the lock is visible after. Blocks; makes no progress.
 * Thread safety: any.
 */
MOB_API mob_status_t mob_lock(mob_lock_t* lock, int* recovered);

/**
 * Acquires a lock if nobody, or only a process that died, holds it.
 *
 * @param lock       as mob_lock()
 * @param acquired   out: 1 if the calling thread has it now, else 0
 * @param recovered  as mob_lock()
 * @return as mob_lock()
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_trylock(mob_lock_t* lock, int* acquired, int* recovered);

/**
 * Releases a lock that the calling thread holds. What it did before is visible to later owners.
 *
 * @param lock  as mob_lock()
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread does not hold it, with nothing
 *         changed); MOB_ERR_ARGUMENT; MOB_ERR_RANGE
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_unlock(mob_lock_t* lock);

/** Mutexes that the members of a team host. Owned by the library until mob_mutexes_free(). */
typedef struct mob_mutexes* mob_mutexes_t;

/** Most mutexes that one member can host. */
#define MOB_MAX_MUTEXES (1 << 24)

/**
 * Makes mutexes, all free. Compare ARMCI_Create_mutexes.
 *
 * Collective over the team, blocks until every member called it.
 *
 * @param team     a live team, not to be freed before the mutexes
 * @param count    how many the calling member hosts; may differ between members and may be 0
 * @param mutexes  out: the mutexes of all members
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`mutexes` null),
 *         MOB_ERR_RANGE (more than MOB_MAX_MUTEXES), MOB_ERR_MEMORY, MOB_ERR_PEER (it failed at, or
 *         died in, another member). If one process fails, all fail, and nothing is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_mutexes_create(mob_team_t team, size_t count, mob_mutexes_t* mutexes);

/**
 * Frees mutexes. Collective over their team, blocks until every member called it.
 *
 * @param mutexes  live mutexes, none of them held; null does nothing
 * @return MOB_OK; MOB_ERR_STATE (also if a mutex is held: every member fails then, and nothing is
 *         freed); MOB_ERR_HANDLE; MOB_ERR_PEER (another member failed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_mutexes_free(mob_mutexes_t mutexes);

/**
 * Acquires a mutex; waits for as long as that takes.
 *
 * @param mutexes    live mutexes
 * @param index      which of those that `rank` hosts, from 0 on
 * @param rank       the host's rank in the world
 * @param recovered  out: as mob_lock(); may be null
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread holds it already, or in a handler, if
 *         `rank` is on another host); MOB_ERR_HANDLE; MOB_ERR_RANK (not in the team); MOB_ERR_RANGE
 *         (`rank` hosts no such mutex); MOB_ERR_PEER (`rank`, on another host, died)
 *
 * As mob_lock(). Thread safety: any.
 */
MOB_API mob_status_t mob_mutex_lock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank,
                                    int* recovered);

/** As mob_mutex_lock() if it need not wait, otherwise `*acquired` becomes 0. MOB_ERR_ARGUMENT if
 *  `acquired` is null. Does not block but for the answer of a rank on another host. What another
 *  process released can be acquired after a barrier in between, or a message from it to `rank`.
 *  Thread safety: any. */
MOB_API mob_status_t mob_mutex_trylock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank,
                                       int* acquired, int* recovered);

/**
 * Releases a mutex that the calling thread holds.
 *
 * @return as mob_mutex_lock(); MOB_ERR_STATE also if the calling thread does not hold it
 *
 * Puts of the calling thread before are visible to later owners. Does not block. Thread safety:
 * any.
 */
MOB_API mob_status_t mob_mutex_unlock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank);

#ifdef __cplusplus
}
#endif
#endif
