/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TEAM_H
#define MOBIUS_TEAM_H

/**
 * @file
 * Teams: ordered sets of processes that make collective calls together.
 *
 * A member of a team has a team rank, 0 … size - 1. Ranks in put, get and all other one-sided calls
 * are ranks of the job; mob_team_translate() converts. All members of a team make its collective
 * calls in the same order, one at a time. Calls on different teams are independent.
 *
 * Compare OpenSHMEM 1.5 §9.4 and MPI-4 §7.4. */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A team. The library owns it from its creation to mob_team_free(). */
typedef struct mob_team* mob_team_t;

/** The team of all processes of the job. Its ranks are those of mob_rank(). */
#ifdef __cplusplus
#define MOB_TEAM_WORLD (reinterpret_cast<mob_team_t>(1))
#else
#define MOB_TEAM_WORLD ((mob_team_t)1)
#endif
/** No team: the result of a split in a process that is in none of the new teams. */
#ifdef __cplusplus
#define MOB_TEAM_NONE (static_cast<mob_team_t>(nullptr))
#else
#define MOB_TEAM_NONE ((mob_team_t)0)
#endif

/**
 * Makes a team of the members of `parent` that pass the same colour.
 *
 * Collective over `parent`: blocks until every member has called it.
 *
 * @param parent  the team to split
 * @param colour  selects the team that the caller joins; negative: none
 * @param key     orders the ranks of the new team; equal keys are ordered by rank in `parent`
 * @param team    out: the team, or MOB_TEAM_NONE with a negative colour
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`parent` is not a live team), MOB_ERR_ARGUMENT
 *         (`team` is null, or a member calls one of the other two splits), MOB_ERR_MEMORY,
 *         MOB_ERR_PEER (another member failed or died). If one process fails, all fail, and no team
 *         is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_split(mob_team_t parent, int colour, int key, mob_team_t* team);

/**
 * Makes one team of the members start, start + stride, … of `parent`.
 *
 * Collective over `parent`: all members pass the same values. Blocks until every member has called
 * it.
 *
 * @param parent  the team to take members from
 * @param start   rank in `parent` of the new team's rank 0
 * @param stride  distance in `parent` from rank to rank; may be negative, but not 0
 * @param size    number of members of the new team, at least 1
 * @param team    out: the team, or MOB_TEAM_NONE in a process that is not a member
 * @return as mob_team_split(); MOB_ERR_RANK (a member would not be in `parent`); MOB_ERR_ARGUMENT
 *         also for stride 0, size < 1, or values that differ between members of the new team
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_split_strided(mob_team_t parent, mob_rank_t start, mob_rank_t stride,
                                            mob_rank_t size, mob_team_t* team);

/**
 * Makes a team of listed members of `parent`.
 *
 * Collective over `parent`: all listed members pass the same list. Disjoint lists make several
 * teams in one call. Blocks until every member has called it.
 *
 * @param parent  the team to take members from
 * @param ranks   ranks in `parent`, all different; the position is the rank in the new team. The
 *                caller owns the array, which is read during the call only. A list with a constant
 *                stride takes no memory per member.
 * @param count   number of ranks, at least 1
 * @param team    out: the team, or MOB_TEAM_NONE in a process that is not listed
 * @return as mob_team_split_strided(); MOB_ERR_ARGUMENT also if `ranks` is null or lists a rank
 *         twice
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_split_list(mob_team_t parent, const mob_rank_t* ranks,
                                         mob_rank_t count, mob_team_t* team);

/**
 * Distributes `bytes` bytes of every listed process to every listed process, in the order of the
 * list. The caller of mob_team_gather() provides this function.
 *
 * @param mine      `bytes` bytes of the calling process
 * @param bytes     the same in every process
 * @param all       out: room for `bytes` bytes of each listed process
 * @param argument  the argument of mob_team_gather()
 * @return 0, or any other value if it failed
 */
typedef int (*mob_exchange_t)(const void* mine, size_t bytes, void* all, void* argument);

/**
 * Makes a team of listed processes of the job. The listed processes exchange data by a function of
 * the caller, so that processes outside the list, and other teams, take no part.
 *
 * Collective over the listed processes only; all pass the same list.
 *
 * @param ranks     numbers (mob_rank()) of connected processes of the job, each once, the caller's
 *                  too. The place in the list is the rank in the team. Read during the call only
 * @param count     length of the list, at least 1
 * @param exchange  called several times, equally often in each listed process, with up to 64 bytes.
 *                  MPI_Allgather() over a communicator of the listed processes is suitable
 * @param argument  passed to `exchange`
 * @param team      out: the team
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK (not a process of the job, or not connected with the
 *         caller), MOB_ERR_ARGUMENT (null, `count` < 1, a rank listed twice, or the caller is not
 *         listed: returns at once), MOB_ERR_MEMORY, MOB_ERR_SYSTEM (`exchange` failed),
 *         MOB_ERR_PEER (the call failed in another listed process). Unless `exchange` fails, the
 *         call fails in all listed processes or in none.
 *
 * Thread safety: that of `exchange`. Compare MPI-4 MPI_Comm_create_group.
 */
MOB_API mob_status_t mob_team_gather(const mob_rank_t* ranks, mob_rank_t count,
                                     mob_exchange_t exchange, void* argument, mob_team_t* team);

/**
 * Makes a team of the members of a team that are alive, in the same order.
 *
 * Collective over these: blocks until each member has called it, has died, or has called
 * mob_finalize(). All that return from it get the same team, or all get an error, even if more
 * members die meanwhile. A member that dies during the call may be in the new team; then shrink
 * that one, too. The old team stays as it is: with a dead member it can make no collective calls
 * but this one and mob_team_agree(). Nobody needs to have died.
 *
 * Today: in teams whose members are on one host.
 *
 * @param team       the team to take members from; may be MOB_TEAM_WORLD
 * @param survivors  out: the new team
 * @return MOB_OK, MOB_ERR_STATE (also in a message handler, and if the team has members on several
 *         hosts: returns at once), MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`survivors` is null),
 *         MOB_ERR_MEMORY, MOB_ERR_PEER (the call failed in another living member, or the others
 *         take this process for dead)
 *
 * Thread safety: per team. Compare ULFM MPIX_Comm_shrink. With the setting MOBIUS_ON_DEATH=error
 * (failure.h) a job goes on when a process dies.
 */
MOB_API mob_status_t mob_team_shrink(mob_team_t team, mob_team_t* survivors);

/**
 * Gives all living members of a team the bits that each of them has set.
 *
 * Collective over these: blocks until each member has called it, has died, or has called
 * mob_finalize(). All that return from it get the same bits, even if members die meanwhile, as no
 * other collective call ensures. The bits of a member that dies may count or not.
 *
 * Today: in teams whose members are on one host.
 *
 * @param team   a live team
 * @param flags  in: the caller's bits; out: those that all living members have set
 * @return MOB_OK, MOB_ERR_STATE (also in a message handler, and if the team has members on several
 *         hosts: returns at once), MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`flags` is null; the others
 *         get 0), MOB_ERR_PEER (the others take this process for dead)
 *
 * Thread safety: per team. Compare ULFM MPIX_Comm_agree.
 */
MOB_API mob_status_t mob_team_agree(mob_team_t team, uint32_t* flags);

/**
 * Frees a team. Collective over it: blocks until every member has called it. Everything made on the
 * team must be freed before: allocations, heaps, and objects for epochs, for access and of mutexes.
 *
 * @param team  a live team other than MOB_TEAM_WORLD; MOB_TEAM_NONE does nothing
 * @return MOB_OK, MOB_ERR_STATE (also in a message handler, and while something made on the team is
 *         live: returns at once), MOB_ERR_HANDLE (not live), MOB_ERR_ARGUMENT (MOB_TEAM_WORLD),
 *         MOB_ERR_PEER (a member died; the team is freed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_free(mob_team_t team);

/**
 * @param team  a live team
 * @return the rank of the calling process in a team, or MOB_ERR_STATE or MOB_ERR_HANDLE (negative).
 *         Does not block. Thread safety: any.
 */
MOB_API mob_rank_t mob_team_rank(mob_team_t team);

/**
 * @param team  a live team
 * @return the number of members of a team, or MOB_ERR_STATE or MOB_ERR_HANDLE (negative). Does not
 *         block. Thread safety: any.
 */
MOB_API mob_rank_t mob_team_size(mob_team_t team);

/**
 * Finds the number of a member: what puts, gets, messages and locks name it by, its mob_rank().
 *
 * @param team    a live team
 * @param rank    a rank in `team`
 * @return the member's number; MOB_ERR_STATE, MOB_ERR_HANDLE or MOB_ERR_RANK (negative)
 *
 * Local, does not block. Thread safety: any. In a job without spawned processes (dynamic.h) it is
 * the rank in MOB_TEAM_WORLD.
 */
MOB_API mob_rank_t mob_team_number(mob_team_t team, mob_rank_t rank);

/**
 * Finds the rank in one team of a member of another.
 *
 * @param from    a live team
 * @param rank    a rank in `from`
 * @param to      a live team
 * @param result  out: the rank in `to` of the same process; -1 if it is not a member
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK, MOB_ERR_ARGUMENT (`result` null)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_team_translate(mob_team_t from, mob_rank_t rank, mob_team_t to,
                                        mob_rank_t* result);

#ifdef __cplusplus
}
#endif
#endif
