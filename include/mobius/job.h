/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_JOB_H
#define MOBIUS_JOB_H

/**
 * @file
 * Joining and leaving a job, and who takes part in it.
 *
 * A job is the set of processes that one `mobius run` started, or that a launcher with PMIx (Open
 * MPI's mpirun, prterun, Slurm's srun) or the launcher of an MPI library (MPICH's mpiexec) started,
 * on one host or, as docs/hosts.md says, on several, whether the program uses MPI or not; a program
 * started without a launcher is a job of one. Ranks are 0 … mob_size() - 1.
 * Processes whose memory the calling process can map are its host-mates; it is one of them itself.
 *
 * A child of fork() is in no job: every call in it fails with MOB_ERR_STATE, and the memory that
 * the library gave is shared with the parent. It may start another program, or end with _exit().
 */

#include <mobius/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Number of a process in its job. */
typedef int32_t mob_rank_t;

/**
 * Joins the job and reserves the address window of its shared memory.
 *
 * Collective over the job, blocks until every process called it. Reads the MOBIUS_* settings. Opens
 * /dev/null in the place of standard input, output and error, where these are closed.
 *
 * @return MOB_OK;
 *         MOB_ERR_STATE    called twice, or after mob_finalize() (a process joins once);
 *         MOB_ERR_SETTING  a MOBIUS_* variable is malformed (unknown ones only warn);
 *         MOB_ERR_SYSTEM   the launcher cannot be reached, the host refuses memfd or sockets, or
 *                          processes on several hosts find no way to each other: no PMIx, no MPI
 *                          that has been initialised, no provider of a network (docs/hosts.md);
 *         MOB_ERR_MEMORY   no address space could be reserved (`ulimit -v`);
 *         MOB_ERR_PEER     it failed in another process, or a process died before all had joined.
 *         After an error the process is as before the call. But where PMIx or an MPI brought the
 *         processes together and others may wait for this one, the job ends, after a line that says
 *         why.
 *
 * Thread safety: single; no other call may run at the same time.
 */
MOB_API mob_status_t mob_init(void);

/**
 * Joins a job of the processes of an MPI communicator, in its order, whoever started them; those
 * that are not in it have no part, and may join with other communicators.
 *
 * Collective over the communicator, instead of mob_init(). MPI must be initialised before, and must
 * not be finalised before mob_finalize() has returned.
 *
 * @param communicator  an MPI_Comm of the MPI that the program has loaded: where that is a pointer
 *                      (Open MPI), as it is; where it is an int (MPICH and its kin),
 *                      `(void*)(intptr_t)comm`. Not kept.
 * @return as mob_init(); MOB_ERR_STATE also if no MPI that is known runs in this process;
 *         MOB_ERR_ARGUMENT (MPI_COMM_NULL, or an intercommunicator)
 *
 * Thread safety: single; no other call may run at the same time.
 */
MOB_API mob_status_t mob_init_mpi(const void* communicator);

/**
 * Leaves the job: completes everything this process started, then frees what is still allocated.
 *
 * Collective over the job, blocks until every process that is alive called it. A process that ends
 * without it, with whatever exit code, has died: see failure.h for what becomes of the job.
 *
 * @return MOB_OK; MOB_ERR_STATE before mob_init() or after a first mob_finalize()
 *
 * Thread safety: single; no other call may run at the same time.
 */
MOB_API mob_status_t mob_finalize(void);

/** @return 1 between mob_init() and mob_finalize(), else 0. Thread safety: any. */
MOB_API int mob_initialized(void);

/** @return rank of the calling process, or MOB_ERR_STATE (negative) outside init … finalize.
 *  Thread safety: any. */
MOB_API mob_rank_t mob_rank(void);

/** @return number of processes of the job, or MOB_ERR_STATE (negative) outside init … finalize.
 *  Thread safety: any. */
MOB_API mob_rank_t mob_size(void);

/** @return how many host-mates the calling process has, itself included, or MOB_ERR_STATE.
 *  Thread safety: any. */
MOB_API mob_rank_t mob_host_size(void);

/** @return position of the calling process among its host-mates, in rank order, or MOB_ERR_STATE.
 *  Thread safety: any. */
MOB_API mob_rank_t mob_host_rank(void);

/**
 * Whether a process shares memory with the caller.
 *
 * @param rank  any rank of the job
 * @return 1 if `rank` is a host-mate (or the caller), 0 if it is on another host,
 *         MOB_ERR_STATE or MOB_ERR_RANK (negative) on error. Thread safety: any.
 */
MOB_API int mob_is_host_mate(mob_rank_t rank);

/**
 * Rank of the host-mate at a position.
 *
 * @param host_rank  0 … mob_host_size() - 1
 * @param rank       out: its rank in the job
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK (no such position), MOB_ERR_ARGUMENT (`rank` null)
 *
 * Thread safety: any.
 */
MOB_API mob_status_t mob_host_mate(mob_rank_t host_rank, mob_rank_t* rank);

/**
 * Ends the whole job at once: prints one line with the calling rank and `reason` to standard error
 * and exits with `exit_code`; the launcher then ends every other process, whatever MOBIUS_ON_DEATH
 * says.
 *
 * @param exit_code  exit status of the job, 1 … 255 (others become 1)
 * @param reason     text or null
 *
 * Does not return, does not finalise. Thread safety: any. Callable at any time.
 */
MOB_API __attribute__((noreturn)) void mob_abort(int exit_code, const char* reason);

/** @return version of the library, "MAJOR.MINOR.PATCH"; static text. Thread safety: any. */
MOB_API const char* mob_version(void);

#ifdef __cplusplus
}
#endif
#endif
