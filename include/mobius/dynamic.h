/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DYNAMIC_H
#define MOBIUS_DYNAMIC_H

/**
 * @file
 * Processes that join a running job, and jobs that connect.
 *
 * mob_spawn() starts processes and makes a *bridge* to them: two groups of processes that reach
 * each other. They share the memory of their host like those that were there from the start,
 * and every operation on them costs the same. In a job on several hosts they start beside any
 * process of it, and operations between hosts go over the network as ever.
 *
 * A process has one *number* (mob_rank()) in the whole job, which all processes use to name it in
 * puts, gets, messages and locks. Spawned processes get numbers above all others, and no number is
 * given out twice. MOB_TEAM_WORLD and mob_size() are the processes that were started together:
 * those of one spawn have a world of their own, in which mob_team_rank() counts from 0. In the
 * processes that the job began with, number and rank in the world are the same. mob_team_number()
 * gives the number of a member of a team.
 *
 * The ranks are processes. Where `mobius run` started the job, its launcher starts the new
 * processes, too. Otherwise, on one host, the root does: they share its standard output and error,
 * and are killed when its process ends.
 *
 * *On several real hosts* the launcher of the job has to start them: `mobius run --hosts`, prterun
 * and Open MPI's mpirun do. There the new processes are a job of their own that connects with the
 * team, and what is said below of jobs that connect holds instead: numbers are per job, also that
 * of mob_rank(), and memory is reached that is exposed or allocated on merged teams.
 *
 * *Jobs that connect.* Two jobs that know nothing of each other connect by a *port*: one opens it
 * and accepts, the other connects. mob_join() does the same for two processes that have a socket
 * between them. Both sides get a bridge, and what they do over it is as fast as in either job:
 * local peers share memory, operations between hosts go over the network. Numbers are per job: the
 * processes that a job had keep theirs in it, and each job gives those of the other one numbers
 * above (mob_bridge_others()), which do not mean the same in the other job. mob_team_number() gives
 * the caller's own job's number.
 *
 * Over the bridge both sides reach what is exposed (expose.h), and what is allocated on teams that
 * mob_bridge_merge() makes; what they allocated in their own job, the other one does not reach:
 * MOB_ERR_RANGE. Every operation works on merged teams, but for mob_spawn() and mob_connect()
 * (MOB_ERR_STATE). Waits in a context (context.h) cover what goes to other jobs in no context.
 * Texts of errors name processes by their numbers in what both have joined.
 *
 * If both jobs are on one host, the processes that connect join the shared memory of the job that
 * accepts. They then also reach all memory of that job, and that side may call both. */

#include <mobius/job.h>
#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Two groups of processes that mob_spawn(), mob_accept() and mob_connect(), or mob_join() connect.
 */
typedef struct mob_bridge* mob_bridge_t;

/** No bridge. */
#ifdef __cplusplus
#define MOB_BRIDGE_NONE (static_cast<mob_bridge_t>(nullptr))
#else
#define MOB_BRIDGE_NONE ((mob_bridge_t)0)
#endif

/** For mob_spawn_options_t: fewer processes than asked for are enough, if there is one at least. */
#define MOB_SPAWN_SOME 1u

/** How mob_spawn() starts processes. All zeros, as a null pointer, are the defaults. */
typedef struct mob_spawn_options {
  uint32_t flags;                 /**< 0 or MOB_SPAWN_SOME */
  mob_rank_t root;                /**< rank in the team of the member whose arguments count */
  const char* folder;             /**< the folder in which the processes start; null: the root's */
  const char* const* environment; /**< "NAME=VALUE" to add to the root's environment or to replace
                                     in it; ends with a null pointer. Null: nothing */
  const mob_rank_t* beside;       /**< for each new process the number of one that lives, on whose
                                     host it starts; null: all on the root's host */
} mob_spawn_options_t;

/**
 * Starts processes, which join the job.
 *
 * Collective over the team: blocks until the processes have called mob_init(), which returns in
 * them when this call does here. It succeeds at all members of the team that live, or at none,
 * even if one dies meanwhile. (If the team is on several hosts, a death may leave the call failed
 * at some only; the team is unusable then.) Until then the end of one of the new processes is an
 * error of this call, and the job goes on as before. Afterwards they are processes of the job like
 * others: MOBIUS_ON_DEATH says what happens when one dies. Their standard input is empty.
 *
 * @param team      the processes that get the bridge
 * @param program   the program to start, found as a shell does. Counts at the root only, as `argv`
 *                  and `count`; the caller owns it
 * @param argv      arguments from the first after the program's name, ending with a null pointer;
 *                  null: none
 * @param count     how many processes, at least 1
 * @param options   null: the defaults. `root` must be the same in all members
 * @param children  out: the bridge to the new processes; mob_bridge_disconnect() frees it
 * @return MOB_OK; MOB_ERR_STATE (outside init … finalize, in a message handler, or in a job that
 *         cannot spawn: of threads, or on several real hosts if its launcher starts no more
 *         processes or with hooks; or on these after 15 bridges that were not disconnected);
 *         MOB_ERR_HANDLE (`team`); MOB_ERR_ARGUMENT; MOB_ERR_RANK (`root` or `beside`);
 *         MOB_ERR_RANGE (more processes than the job can have: MOBIUS_MAX_PROCESSES, or 16000 on
 *         several real hosts); MOB_ERR_MEMORY; MOB_ERR_SYSTEM
 *         (the program cannot be started: the text has the process, the program and the reason);
 *         MOB_ERR_PEER (a new process ended before all had joined, or did not call mob_init()
 *         within MOBIUS_JOIN_SECONDS; or a member of the team died). After an error no process of
 *         the call is left.
 *
 * Thread safety: per team. Compare MPI-4 MPI_Comm_spawn.
 */
MOB_API mob_status_t mob_spawn(mob_team_t team, const char* program, const char* const* argv,
                               mob_rank_t count, const mob_spawn_options_t* options,
                               mob_bridge_t* children);

/**
 * @return the bridge to the processes that spawned this one; MOB_BRIDGE_NONE if none did, or after
 *         mob_bridge_disconnect(). Does not block. Thread safety: any.
 */
MOB_API mob_bridge_t mob_parent(void);

/**
 * Tells about the other side of a bridge: in the processes that spawned, the new ones; in those,
 * the ones that spawned them; in a job that connected or accepted, the processes of the other job.
 *
 * @param bridge   a live bridge
 * @param numbers  out: their numbers, in the order of their team; null if they are not wanted. Room
 *                 for as many as the function returns
 * @return how many they are; MOB_ERR_STATE or MOB_ERR_HANDLE (negative)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_rank_t mob_bridge_others(mob_bridge_t bridge, mob_rank_t* numbers);

/**
 * Makes one team of all processes of a bridge. Of two jobs, the one that connected counts as the
 * spawned processes.
 *
 * Collective over them: blocks until all have called it. It succeeds at all that live, or at none,
 * even if one dies meanwhile.
 *
 * @param bridge          a live bridge
 * @param children_first  0: the processes that spawned have the first ranks; any other value: the
 *                        spawned ones have. All pass the same
 * @param team            out: the team; free it before the bridge
 * @return as mob_team_split(); MOB_ERR_HANDLE (`bridge` is not live); MOB_ERR_ARGUMENT (`team` is
 *         null, or the orders differ)
 *
 * Thread safety: per bridge. Compare MPI-4 MPI_Intercomm_merge.
 */
MOB_API mob_status_t mob_bridge_merge(mob_bridge_t bridge, int children_first, mob_team_t* team);

/**
 * Ends a bridge and the connection of its two sides.
 *
 * Completes the calling thread's operations, waits until all processes of the bridge have called
 * it, and frees the bridge. From then on neither side waits for the other in mob_finalize(), and
 * neither may name processes of the other. Teams that mob_bridge_merge() made, and what was made on
 * them, must be freed before. mob_finalize() waits for the processes of a bridge that was not
 * disconnected.
 *
 * @param bridge  a live bridge; MOB_BRIDGE_NONE does nothing
 * @return MOB_OK, MOB_ERR_STATE (also in a message handler), MOB_ERR_HANDLE, MOB_ERR_PEER (a
 * process died; the bridge is freed), or the first error of an operation without a handle
 *
 * Thread safety: per bridge. Compare MPI-4 MPI_Comm_disconnect.
 */
MOB_API mob_status_t mob_bridge_disconnect(mob_bridge_t bridge);

/** Where other jobs connect. */
typedef struct mob_port* mob_port_t;

/** No port. */
#ifdef __cplusplus
#define MOB_PORT_NONE (static_cast<mob_port_t>(nullptr))
#else
#define MOB_PORT_NONE ((mob_port_t)0)
#endif

/** Bytes for the text of a port, with the zero at its end. Nothing is written beyond the zero. */
#define MOB_PORT_BYTES 256

/** How jobs connect. All zeros, as a null pointer, are the defaults. */
typedef struct mob_connect_options {
  mob_rank_t root;  /**< rank in the team of the member whose port, and time, count */
  uint32_t seconds; /**< how long to wait for the other job; 0: MOBIUS_JOIN_SECONDS */
} mob_connect_options_t;

/**
 * Opens a port, where processes of other jobs may connect: of this user on this host, and by TCP of
 * all hosts that reach an address of this one (MOBIUS_INTERFACE: that of one network alone).
 *
 * Nothing happens there until mob_accept(): processes that connect wait.
 *
 * @param name  under which mob_connect() finds the port on this host: 1 to 64 letters, digits and
 *              the characters . - _ ; one port of the user on this host has it at a time. Null:
 *              none
 * @param port  out: mob_port_close() frees it, as does the end of the process
 * @param text  out: what others connect to, MOB_PORT_BYTES bytes, zero-terminated. It holds the
 *              key of the port: whoever has it can connect, as this user. Pass it on as you would a
 *              password. Null: not wanted
 * @return MOB_OK; MOB_ERR_STATE (outside init … finalize, in a job of threads, or the name is
 *         taken); MOB_ERR_ARGUMENT; MOB_ERR_MEMORY; MOB_ERR_SYSTEM
 *
 * Local. Thread safety: any. Compare MPI-4 MPI_Open_port and MPI_Publish_name.
 */
MOB_API mob_status_t mob_port_open(const char* name, mob_port_t* port, char* text);

/**
 * Closes a port. Processes that have connected and were not accepted get an error.
 *
 * @param port  a live port, at which no thread accepts; MOB_PORT_NONE does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE
 *
 * Local, does not block. Thread safety: per port.
 */
MOB_API mob_status_t mob_port_close(mob_port_t port);

/**
 * Lets a team of another job connect.
 *
 * Collective over the team: blocks until the processes of the other job, all of which call
 * mob_connect(), have joined. Processes that do not know the port's key, or are another user's on
 * this host, are dropped with a line in the log.
 *
 * @param team     the processes that get the bridge
 * @param port     the port of the root; counts there only
 * @param options  null: the defaults. `root` must be the same in all members
 * @param bridge   out: the bridge to the processes that connected; mob_bridge_disconnect() frees it
 * @return MOB_OK; MOB_ERR_STATE (outside init … finalize, in a message handler, or in a job of
 *         threads; after 15 connections between hosts that were not disconnected);
 *         MOB_ERR_HANDLE (`team` or `port`); MOB_ERR_ARGUMENT; MOB_ERR_RANK (`root`);
 *         MOB_ERR_RANGE (more processes than the job can have, MOBIUS_MAX_PROCESSES);
 *         MOB_ERR_MEMORY; MOB_ERR_SYSTEM; MOB_ERR_PEER (nobody connected in time; a process that
 *         connected died or gave up before all had joined; or a member of the team died). After
 *         an error the job is as before. (If the jobs are not both on one host, a death while
 *         they join may leave the call failed at some processes only.)
 *
 * Thread safety: per team and per port. Compare MPI-4 MPI_Comm_accept.
 */
MOB_API mob_status_t mob_accept(mob_team_t team, mob_port_t port,
                                const mob_connect_options_t* options, mob_bridge_t* bridge);

/**
 * Connects a team to another job.
 *
 * Collective over the team: blocks until the other job has accepted and all have joined.
 *
 * @param team     the processes that get the bridge
 * @param port     the text of a port, or its name. Counts at the root only; the caller owns it
 * @param options  null: the defaults. `root` must be the same in all members
 * @param bridge   out: the bridge to the other job; mob_bridge_disconnect() frees it
 * @return as mob_accept(); MOB_ERR_STATE also with hooks (MOBIUS_HOOKS), on a team that is not all
 *         of this job, and after 15 connections that were not disconnected; MOB_ERR_MEMORY also if
 *         the place in the address space where the other job has its shared memory is not free
 *         here, as in two bridges to one job; MOB_ERR_PEER also if no such port is open, if
 *         nobody accepts in time, or if the other job refuses. After an error the job is as before.
 *
 * Thread safety: per team. Compare MPI-4 MPI_Comm_connect.
 */
MOB_API mob_status_t mob_connect(mob_team_t team, const char* port,
                                 const mob_connect_options_t* options, mob_bridge_t* bridge);

/**
 * Connects two processes that have a connected socket between them.
 *
 * Each of the two calls it, and joins alone, without the others of its job; which of them accepts
 * is left to chance. On one host both must run as the same user. The socket carries the keys of
 * ports in the clear: between hosts, take one that nobody else can read.
 *
 * @param socket  the caller's end of a socket of any kind; stays the caller's. Nothing else may be
 *                under way on it. After MOB_OK it is as before
 * @param bridge  out: the bridge to the other process; mob_bridge_disconnect() frees it
 * @return as mob_accept() and mob_connect(); MOB_ERR_PEER also if the socket's other end was
 * closed, or does not call it within MOBIUS_JOIN_SECONDS; MOB_ERR_SYSTEM (it is no connected
 * socket)
 *
 * Thread safety: per socket. Compare MPI-4 MPI_Comm_join.
 */
MOB_API mob_status_t mob_join(int socket, mob_bridge_t* bridge);

#ifdef __cplusplus
}
#endif
#endif
