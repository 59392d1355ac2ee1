/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TEAM_H
#define MOBIUS_TEAM_H

/**
 * @file
 * Teams: ordered sets of processes that make collective calls together.
 *
 * A member of a team has a team rank, 0 … size - 1. Ranks in put, get and all other one-sided calls
 * are ranks of the world; mob_team_translate() converts. Calls on one team are made in the same
 * order by all its members, and one at a time; calls on different teams are independent of each
 * other.
 *
 * Compare OpenSHMEM 1.5 §9.4 and MPI-4 §7.4.
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A team. Owned by the library from its creation to mob_team_free(). */
typedef struct mob_team* mob_team_t;

/** The team of all processes of the job, whose ranks are those of mob_rank(). */
#ifdef __cplusplus
#define MOB_TEAM_WORLD (reinterpret_cast<mob_team_t>(1))
#else
#define MOB_TEAM_WORLD ((mob_team_t)1)
#endif
/** No team: what a split gives to those who are in none of the new teams. */
#ifdef __cplusplus
#define MOB_TEAM_NONE (static_cast<mob_team_t>(nullptr))
#else
#define MOB_TEAM_NONE ((mob_team_t)0)
#endif

/**
 * Makes a team of the members of `parent` that pass the same colour.
 *
 * Collective over `parent`, blocks until every member called it.
 *
 * @param parent  the team to split
 * @param colour  which team the caller joins; negative: none
 * @param key     orders the new team's ranks; equal keys are ordered by rank in `parent`
 * @param team    out: the team, MOB_TEAM_NONE with a negative colour
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`parent` is not a live team),
 *         MOB_ERR_ARGUMENT (`team` null, or a member takes from `parent` by ranks), MOB_ERR_MEMORY,
 *         MOB_ERR_PEER (it failed at, or died in, another member). If one process fails, all fail,
 *         and no team is made.
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_split(mob_team_t parent, int colour, int key, mob_team_t* team);

/**
 * Makes one team of the members start, start + stride, … of `parent`.
 *
 * Collective over `parent`; all members pass the same values.
 *
 * @param parent  the team to take from
 * @param start   rank in `parent` of the new team's rank 0
 * @param stride  distance in `parent` from rank to rank; may be negative, not 0
 * @param size    members of the new team, at least 1
 * @param team    out: the team, MOB_TEAM_NONE in a process that is not a member
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
 * Collective over `parent`; all that are listed pass the same list. Disjoint lists make several
 * teams in one call.
 *
 * @param parent  the team to take from
 * @param ranks   ranks in `parent`, no two alike; position is rank in the new team. The caller's,
 *                read during the call only. A list that is a stride takes no memory per member.
 * @param count   how many, at least 1
 * @param team    out: the team, MOB_TEAM_NONE in a process that is not listed
 * @return as mob_team_split_strided(); MOB_ERR_ARGUMENT also for `ranks` null or a rank listed
 *         twice
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_split_list(mob_team_t parent, const mob_rank_t* ranks,
                                         mob_rank_t count, mob_team_t* team);

/**
 * Frees a team. Collective over it, blocks until every member called it. What was made on the team
 * is freed before: allocations, heaps, and objects for epochs, for access and of mutexes.
 *
 * @param team  a live team but the world; MOB_TEAM_NONE does nothing
 * @return MOB_OK, MOB_ERR_STATE (also in a message handler, and while something made on the team is
 *         live: returns at once), MOB_ERR_HANDLE (not live), MOB_ERR_ARGUMENT (the world),
 *         MOB_ERR_PEER (a member died; the team is freed)
 *
 * Thread safety: per team.
 */
MOB_API mob_status_t mob_team_free(mob_team_t team);

/** @return rank of the calling process in a team, or MOB_ERR_STATE or MOB_ERR_HANDLE (negative).
 *  Thread safety: any. */
MOB_API mob_rank_t mob_team_rank(mob_team_t team);

/** @return number of members of a team, or MOB_ERR_STATE or MOB_ERR_HANDLE (negative).
 *  Thread safety: any. */
MOB_API mob_rank_t mob_team_size(mob_team_t team);

/**
 * Finds a process of one team in another.
 *
 * @param from    a live team
 * @param rank    a rank in it
 * @param to      a live team
 * @param result  out: the rank in `to` of the same process, -1 if it is not a member
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
