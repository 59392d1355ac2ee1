/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_LOCK_H
#define MOBIUS_LOCK_H

/**
 * @file
 * Mutual exclusion: locks in shared memory, and mutexes that members of a team host. (Shared and
 * exclusive access to a member's memory: access.h.)
 *
 * All of them exclude threads of one process, processes and message handlers alike (paper 5, §2),
 * and belong to the thread that acquired them. A release first flushes (mob_flush_all()). It
 * returns the errors of that flush, with the lock released. A handler must not wait for transfers
 * under way, so its release returns MOB_ERR_STATE, with the lock released: the next holder may not
 * see those transfers yet. A waiting thread spins, then yields, then sleeps. Throughput comes
 * first, but no waiter is passed over for more than some 10 ms.
 *
 * Locks in shared memory are for local peers. A mutex of a rank on another host is acquired by a
 * message to that rank, and released without waiting for an answer. The rank's program need not
 * help (with MOBIUS_PROGRESS=poll it must poll or wait in the library). Once a rank on another host
 * has died, its mutexes cannot be acquired any more (MOB_ERR_PEER).
 *
 * **Recovery.** If a process dies or leaves the job while it holds a lock or mutex, the next
 * process that wants it gets it within about 100 ms, and `recovered` says so: the data that the
 * lock protects may be half changed. If the rank that hosts a mutex dies, a process of another host
 * that holds the mutex loses it in the same way: it cannot release it, and may not know yet that it
 * has lost it. A thread that ends while its process continues must have released all its locks. */

#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A lock that lies in shared memory. It is free when all its bytes are 0, as in a fresh allocation.
 * The memory may be freed only while the lock is free.
 */
typedef struct mob_lock_word {
  uint64_t state_; /**< belongs to the library */
} mob_lock_t;

/**
 * Acquires a lock, and waits for as long as that takes.
 *
 * @param lock       in any allocation of any local peer, or in memory that it exposed with
 *                   MOB_EXPOSE_REMAP; the address that the caller has for it (mob_ptr())
 * @param recovered  out: 1 if the former owner died while it held the lock, else 0; may be null
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize, or the calling thread holds the lock already;
 *         MOB_ERR_ARGUMENT  null, or not aligned to 8 bytes;
 *         MOB_ERR_RANGE     not in shared memory
 *
 * The caller sees everything that former owners did before they released the lock. Blocks; makes no
 * progress. Thread safety: any.
 */
MOB_API mob_status_t mob_lock(mob_lock_t* lock, int* recovered);

/**
 * Acquires a lock if it is free, or if its owner died.
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
 * Releases a lock that the calling thread holds. Later owners see everything that the thread did
 * before.
 *
 * @param lock  as mob_lock()
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread does not hold it; then nothing
 *         changes); MOB_ERR_ARGUMENT; MOB_ERR_RANGE; or an error of the flush, with the lock
 *         released
 *
 * Waits only for the calling thread's transfers. Thread safety: any.
 */
MOB_API mob_status_t mob_unlock(mob_lock_t* lock);

/** Mutexes that the members of a team host. The library owns them until mob_mutexes_free(). */
typedef struct mob_mutexes* mob_mutexes_t;

/** The largest number of mutexes that one member can host. */
#define MOB_MAX_MUTEXES (1 << 24)

/**
 * Makes mutexes, all free. Compare ARMCI_Create_mutexes.
 *
 * Collective over the team: blocks until every member has called it.
 *
 * @param team     a live team; must not be freed before the mutexes
 * @param count    number of mutexes that the calling member hosts; may differ between members and
 *                 may be 0
 * @param mutexes  out: the mutexes of all members
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`mutexes` null),
 *         MOB_ERR_RANGE (more than MOB_MAX_MUTEXES), MOB_ERR_MEMORY, MOB_ERR_PEER (another member
 *         failed or died). If one process fails, all fail, and nothing is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_mutexes_create(mob_team_t team, size_t count, mob_mutexes_t* mutexes);

/**
 * Frees mutexes. Collective over their team: blocks until every member has called it.
 *
 * @param mutexes  live mutexes, none of them held; null does nothing
 * @return MOB_OK; MOB_ERR_STATE (also if a mutex is held: then every member fails, and nothing is
 *         freed); MOB_ERR_HANDLE; MOB_ERR_PEER (another member failed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_mutexes_free(mob_mutexes_t mutexes);

/**
 * Acquires a mutex, and waits for as long as that takes.
 *
 * @param mutexes    live mutexes
 * @param index      index of the mutex among those that `rank` hosts, from 0 on
 * @param rank       rank in the job of the member that hosts the mutex
 * @param recovered  out: as mob_lock(); may be null
 * @return MOB_OK; MOB_ERR_STATE (also if the calling thread holds it already, or in a handler, if
 *         `rank` is on another host); MOB_ERR_HANDLE; MOB_ERR_RANK (not in the team); MOB_ERR_RANGE
 *         (`rank` hosts no such mutex); MOB_ERR_PEER (`rank`, on another host, died)
 *
 * Blocks; the caller sees everything that former owners did, as with mob_lock(). Thread safety:
 * any.
 */
MOB_API mob_status_t mob_mutex_lock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank,
                                    int* recovered);

/**
 * Acquires a mutex as mob_mutex_lock() if that needs no wait; otherwise `*acquired` becomes 0.
 *
 * @param acquired  out: 1 if the calling thread has the mutex now, else 0
 * @return as mob_mutex_lock(); MOB_ERR_ARGUMENT also if `acquired` is null
 *
 * Does not block, except for the answer of a rank on another host. A mutex that another process
 * released can be acquired once a barrier has followed, or a message from that process to `rank`.
 * Thread safety: any.
 */
MOB_API mob_status_t mob_mutex_trylock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank,
                                       int* acquired, int* recovered);

/**
 * Releases a mutex that the calling thread holds. Later owners see the calling thread's earlier
 * puts.
 *
 * @return as mob_mutex_lock(); MOB_ERR_STATE also if the calling thread does not hold it; or an
 *         error of the flush, with the mutex released
 *
 * Waits only for the calling thread's transfers. Thread safety: any.
 */
MOB_API mob_status_t mob_mutex_unlock(mob_mutexes_t mutexes, size_t index, mob_rank_t rank);

#ifdef __cplusplus
}
#endif
#endif
