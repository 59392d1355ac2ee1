/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_JOB_H
#define MOBIUS_JOB_H

/**
 * @file
 * Joining and leaving a job, and the processes that take part in it.
 *
 * A job is the set of processes that one launcher started: `mobius run`, a launcher with PMIx (Open
 * MPI's mpirun, prterun, Slurm's srun), or the launcher of an MPI library (MPICH's mpiexec). It
 * runs on one host or, as docs/hosts.md says, on several. The program need not use MPI. A program
 * started without a launcher is a job of one process. Ranks are 0 … mob_size() - 1.
 *
 * A process's *local peers* are the processes whose memory it can map: those on its host, including
 * itself. (The functions that name them say "host mate".)
 *
 * A child of fork() is in no job: every call in it fails with MOB_ERR_STATE, and it shares the
 * library's memory with its parent. It may start another program, or end with _exit(). */

#include <mobius/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The number of a process in its job. */
typedef int32_t mob_rank_t;

/**
 * Joins the job and reserves the address window of its shared memory.
 *
 * Collective over the job: blocks until every process has called it. Reads the MOBIUS_* settings.
 * If standard input, output or error is closed, it opens /dev/null in its place.
 *
 * @return MOB_OK;
 *         MOB_ERR_STATE    it was called twice, or after mob_finalize() (a process joins once);
 *         MOB_ERR_SETTING  a MOBIUS_* variable is malformed (an unknown one only causes a warning);
 *         MOB_ERR_SYSTEM   the launcher cannot be reached, the host refuses memfd or sockets, or
 *                          processes on several hosts cannot reach each other: there is no PMIx, no
 *                          initialised MPI, or no network provider (docs/hosts.md);
 *         MOB_ERR_MEMORY   no address space could be reserved (`ulimit -v`);
 *         MOB_ERR_PEER     it failed in another process, or a process died before all had joined.
 *         After an error the process is as it was before the call. The exception: if PMIx or an MPI
 *         brought the processes together and others may be waiting for this one, the job ends after
 *         a line that gives the reason.
 *
 * Thread safety: single; no other call may run at the same time.
 */
MOB_API mob_status_t mob_init(void);

/**
 * Joins a job made of the processes of an MPI communicator, in the communicator's order, regardless
 * of the launcher. Processes outside the communicator are not in the job and may join with other
 * communicators.
 *
 * Collective over the communicator; replaces mob_init(). MPI must be initialised before the call
 * and must not be finalised before mob_finalize() has returned. The communicator may be one of an
 * MPI session, which then must not be finalised before.
 *
 * @param communicator  an MPI_Comm of the MPI that the program has loaded. Pass it as it is where
 *                      it is a pointer (Open MPI), and as `(void*)(intptr_t)comm` where it is an
 *                      int (MPICH and its derivatives). The library does not keep it.
 * @return as mob_init(); MOB_ERR_STATE also if no known MPI runs in this process; MOB_ERR_ARGUMENT
 *         for MPI_COMM_NULL and for an intercommunicator
 *
 * Thread safety: single; no other call may run at the same time.
 */
MOB_API mob_status_t mob_init_mpi(const void* communicator);

/**
 * Leaves the job: completes everything that this process started, then frees all that is still
 * allocated.
 *
 * Collective over the job: blocks until every process that is alive has called it. A process that
 * ends without it has died, whatever its exit code; failure.h says what happens to the job then.
 *
 * @return MOB_OK; MOB_ERR_STATE before mob_init() or after a first mob_finalize()
 *
 * Thread safety: single; no other call may run at the same time.
 */
MOB_API mob_status_t mob_finalize(void);

/** @return 1 between mob_init() and mob_finalize(), else 0. Does not block. Thread safety: any. */
MOB_API int mob_initialized(void);

/**
 * @return the rank of the calling process, or MOB_ERR_STATE (negative) outside init … finalize.
 *         Does not block. Thread safety: any.
 */
MOB_API mob_rank_t mob_rank(void);

/**
 * @return the number of processes of the job, or MOB_ERR_STATE (negative) outside init … finalize.
 *         Does not block. Thread safety: any.
 */
MOB_API mob_rank_t mob_size(void);

/**
 * @return the number of local peers of the calling process, itself included, or MOB_ERR_STATE
 *         (negative). Does not block. Thread safety: any.
 */
MOB_API mob_rank_t mob_host_size(void);

/**
 * @return the position of the calling process among its local peers in rank order, or MOB_ERR_STATE
 *         (negative). Does not block. Thread safety: any.
 */
MOB_API mob_rank_t mob_host_rank(void);

/**
 * Tells whether a process is a local peer of the caller: whether they share memory.
 *
 * @param rank  any rank of the job
 * @return 1 if `rank` is a local peer (or the caller itself), 0 if it is on another host,
 *         MOB_ERR_STATE or MOB_ERR_RANK (negative) on error
 *
 * Does not block. Thread safety: any.
 */
MOB_API int mob_is_host_mate(mob_rank_t rank);

/**
 * Finds the rank of the local peer at a position.
 *
 * @param host_rank  0 … mob_host_size() - 1
 * @param rank       out: its rank in the job
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK (no such position), MOB_ERR_ARGUMENT (`rank` null)
 *
 * Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_host_mate(mob_rank_t host_rank, mob_rank_t* rank);

/**
 * Ends the whole job at once. The process prints one line with its rank and `reason` to standard
 * error and exits with `exit_code`; the launcher then ends every other process, whatever
 * MOBIUS_ON_DEATH says. With exit code 0 nothing is printed, and the job has succeeded.
 *
 * @param exit_code  exit status of the job, 0 … 255 (any other value becomes 1)
 * @param reason     text, or null
 *
 * Does not return and does not finalise. Thread safety: any. May be called at any time.
 */
MOB_API __attribute__((noreturn)) void mob_abort(int exit_code, const char* reason);

/**
 * @return the version of the library, "MAJOR.MINOR.PATCH"; static text. Thread safety: any. May be
 *         called at any time.
 */
MOB_API const char* mob_version(void);

#ifdef __cplusplus
}
#endif
#endif
