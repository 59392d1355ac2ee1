/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARMCI_H
#define MOBIUS_ARMCI_H

/**
 * @file
 * ARMCI: remote memory copy for distributed arrays (paper 5), over Möbius.
 *
 * Sizes of handles and groups and values of constants are those of ARMCI-MPI, so that libraries
 * compiled for it, such as Debian's Global Arrays, link with this one. docs/fronts/armci.md
 * documents everything beyond that.
 *
 * - **Addresses.** Remote addresses are those that ARMCI_Malloc() returned, or lie behind them;
 *   `proc` is a rank of the job. Local buffers may be any memory.
 * - **Completion.** A call without `Nb` returns when the local buffer may be reused (put,
 *   accumulate) or has the data (get). For a call with `Nb` that holds when ARMCI_Wait() or a
 *   related call returns. Either is complete at the target, visible to all processes, after
 *   ARMCI_Fence() of it.
 * - **Order.** The calling process sees its own blocking operations on one target take effect in
 *   the order of the calls. A call with `Nb` has its place in that order once it was waited for.
 *   ARMCI_Fence() and the calls with a flag order operations for other processes.
 * - **Atomicity.** An accumulate is atomic per element against other accumulates of the type,
 *   ARMCI_Rmw() against other ARMCI_Rmw(), from any process and thread.
 * - **Errors.** Invalid arguments end the job through ARMCI_Error(), with one line that names
 *   function, rank and value. Functions of type `int` return 0 for success. Only allocation returns
 *   anything else, in every process alike.
 * - **Threads.** Many threads may make calls at once, except collective calls.
 *
 * Every function ARMCI_Xyz is a weak alias of its twin PARMCI_Xyz: a tool may define ARMCI_Xyz,
 * count, and call the twin.
 */

/* As ARMCI-MPI's header does, for programs that rely on it. Without MPI, or with ARMCI_NO_MPI, only
 * the functions that take a communicator are missing. */
#if !defined(ARMCI_NO_MPI) && !defined(MPI_VERSION) && defined(__has_include)
#if __has_include(<mpi.h>)
#include <mpi.h>
#endif
#endif

#include <stddef.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef long armci_size_t;

/** Types of elements, for accumulates. */
enum ARMCI_Acc_e {
  ARMCI_ACC_INT, /**< int */
  ARMCI_ACC_LNG, /**< long */
  ARMCI_ACC_FLT, /**< float */
  ARMCI_ACC_DBL, /**< double */
  ARMCI_ACC_CPL, /**< two floats */
  ARMCI_ACC_DCP  /**< two doubles */
};

/** Operations of ARMCI_Rmw(). */
enum ARMCI_Rmw_e { ARMCI_FETCH_AND_ADD, ARMCI_FETCH_AND_ADD_LONG, ARMCI_SWAP, ARMCI_SWAP_LONG };

/** The largest number of stride levels of a strided transfer: boxes have one dimension more. */
#define ARMCI_MAX_STRIDE_LEVEL 8

/** An operation under way. ARMCI_INIT_HANDLE() initialises it. */
typedef struct armci_hdl_s {
  int target;    /**< belongs to the library */
  int aggregate; /**< 1 while it collects operations */
} armci_hdl_t;
typedef armci_hdl_t armci_req_t;

/** Segments of equal length, at listed addresses. */
typedef struct {
  void** src_ptr_array; /**< address from which each is read */
  void** dst_ptr_array; /**< address to which each is written */
  int bytes;            /**< bytes of each segment */
  int ptr_array_len;    /**< number of segments */
} armci_giov_t;

/** A group of processes. It may be copied. All members but the first belong to the library. */
#if defined(MPI_VERSION) && !defined(ARMCI_NO_MPI)
typedef MPI_Comm armci_comm_;
#else
typedef void* armci_comm_;
#endif
typedef struct {
  armci_comm_ comm; /**< communicator of the members, if MPI was initialised before ARMCI */
  armci_comm_ reserved_comm_;
  int* reserved_pointers_[2];
  int reserved_[2];
} ARMCI_Group;

/** Memory of one process, described for other processes: ARMCI_Memget(). */
typedef struct armci_meminfo_ds {
  char* armci_addr; /**< for ARMCI operations on process `cpid` */
  char* addr;       /**< in its own address space */
  unsigned long size;
  int cpid; /**< the owner */
  long idlist[128];
} armci_meminfo_t;

enum armci_domain_e {
  ARMCI_DOMAIN_SMP /**< processes whose memory can be accessed directly */
};
typedef int armci_domain_t;

/* Declares a function and its twin. */
#define ARMCI_FUNCTION_(result, name, parameters) \
  result ARMCI_##name parameters;                 \
  result PARMCI_##name parameters

/* ---- Start and end ------------------------------------------------------------------------- */

/**
 * Joins the job; collective. Under an MPI's launcher, MPI may be initialised before, after or not
 * at all. Calls are counted: as many calls of ARMCI_Finalize() end it.
 */
ARMCI_FUNCTION_(int, Init, (void));
/** As ARMCI_Init(). */
ARMCI_FUNCTION_(int, Init_args, (int* argc, char*** argv));
/** As ARMCI_Init(). The program may request any of MPI's levels of thread support; it gets all. */
ARMCI_FUNCTION_(int, Init_thread, (int requested));
#if defined(MPI_VERSION) && !defined(ARMCI_NO_MPI)
/**
 * As ARMCI_Init(), for the processes of a communicator, which are named by their ranks in it;
 * collective over the communicator. Other processes may start with communicators of their own. MPI
 * must be initialised.
 */
ARMCI_FUNCTION_(int, Init_mpi_comm, (MPI_Comm comm));
/** As ARMCI_Init_mpi_comm() and ARMCI_Init_thread(). */
ARMCI_FUNCTION_(int, Init_thread_comm, (int requested, MPI_Comm comm));
#endif
/** @return 1 between ARMCI_Init() and the last ARMCI_Finalize(), else 0. */
ARMCI_FUNCTION_(int, Initialized, (void));
/** Completes everything and leaves the job; collective. */
ARMCI_FUNCTION_(int, Finalize, (void));
/**
 * Does nothing, because nothing outlives a process, however it ends. Signal handlers may call it.
 */
ARMCI_FUNCTION_(void, Cleanup, (void));
/**
 * Ends the job: prints rank, message and code, and exits with `code` (1 if it is not an exit code).
 */
ARMCI_FUNCTION_(void, Error, (const char* message, int code));

/* ---- Memory -------------------------------------------------------------------------------- */

/**
 * Allocates memory in every process; collective.
 *
 * @param base_ptrs  out: the address of each process's part; null for a part of 0 bytes
 * @param bytes      size of the caller's part; may differ and may be 0
 * @return 0; not 0 in every process if a host lacks memory
 */
ARMCI_FUNCTION_(int, Malloc, (void** base_ptrs, armci_size_t bytes));
/**
 * Frees memory in every process; collective. `ptr` is the caller's part, null if it has no bytes.
 */
ARMCI_FUNCTION_(int, Free, (void* ptr));
/** As ARMCI_Malloc(), in the members of a group; `base_ptrs` is indexed by rank in the group. */
ARMCI_FUNCTION_(int, Malloc_group, (void** base_ptrs, armci_size_t bytes, ARMCI_Group* group));
/** As ARMCI_Free(), in the members of the group that allocated it. */
ARMCI_FUNCTION_(int, Free_group, (void* ptr, ARMCI_Group* group));
/** As ARMCI_Malloc(). There is one kind of memory; the device is ignored. */
ARMCI_FUNCTION_(int, Malloc_memdev, (void** base_ptrs, armci_size_t bytes, const char* device));
/** As ARMCI_Malloc_memdev(), in the members of a group. */
ARMCI_FUNCTION_(int, Malloc_group_memdev,
                (void** base_ptrs, armci_size_t bytes, ARMCI_Group* group, const char* device));
/** As ARMCI_Free(). */
ARMCI_FUNCTION_(int, Free_memdev, (void* ptr));
/** Allocates memory of the caller, not collective; null if the host lacks memory. */
ARMCI_FUNCTION_(void*, Malloc_local, (armci_size_t bytes));
/** Frees memory of ARMCI_Malloc_local(). Null does nothing. */
ARMCI_FUNCTION_(int, Free_local, (void* ptr));
/** Allocates memory of the caller that processes can access to which it sends `*info`. */
ARMCI_FUNCTION_(void, Memget, (size_t bytes, armci_meminfo_t* info, int flags));
/**
 * @return the address at which the caller can load and store the memory, `offset` bytes after its
 *         start; null if it is on another host
 */
ARMCI_FUNCTION_(void*, Memat, (armci_meminfo_t * info, long offset));
/** Ends the use of the address from ARMCI_Memat(). */
ARMCI_FUNCTION_(void, Memdt, (armci_meminfo_t * info, long offset));
/** Frees memory of ARMCI_Memget(); the owner calls it. */
ARMCI_FUNCTION_(void, Memctl, (armci_meminfo_t * info));
/**
 * Announces loads and stores to the caller's part that contains `ptr`: they see everything that
 * other processes have completed.
 */
ARMCI_FUNCTION_(void, Access_begin, (void* ptr));
/** Ends these loads and stores: other processes see the stores. */
ARMCI_FUNCTION_(void, Access_end, (void* ptr));
/** Does nothing, because shared memory has no limit of its own. */
ARMCI_FUNCTION_(void, Set_shm_limit, (unsigned long bytes));
/**
 * @return 1 if addresses of ARMCI_Malloc() in processes of the caller's domain are valid in the
 *         caller
 */
ARMCI_FUNCTION_(int, Uses_shm, (void));
/** As ARMCI_Uses_shm(), for the members of a group. */
ARMCI_FUNCTION_(int, Uses_shm_grp, (ARMCI_Group * group));
/** Copies within the caller's address space; the two may overlap. */
ARMCI_FUNCTION_(void, Copy, (void* src, void* dst, int bytes));

/* ---- Transfers ----------------------------------------------------------------------------- */

/** Copies `bytes` bytes from `src` in the caller to `dst` in process `proc`. */
ARMCI_FUNCTION_(int, Put, (void* src, void* dst, int bytes, int proc));
/** Copies `bytes` bytes from `src` in process `proc` to `dst` in the caller. */
ARMCI_FUNCTION_(int, Get, (void* src, void* dst, int bytes, int proc));
/**
 * Adds `scale` times the elements at `src` in the caller to those at `dst` in process `proc`.
 * `datatype` is one of ARMCI_Acc_e; `scale` points to one such element.
 */
ARMCI_FUNCTION_(int, Acc, (int datatype, void* scale, void* src, void* dst, int bytes, int proc));

/**
 * Copies a box of bytes from the caller to process `proc`.
 *
 * Segment (i1 … in) starts i1 × stride[0] + … + in × stride[n-1] bytes after the first, where n is
 * `stride_levels` and i(k) counts to count[k].
 *
 * @param src         first segment, in the caller
 * @param src_stride  `stride_levels` strides in bytes
 * @param dst         first segment, in process `proc`
 * @param dst_stride  as src_stride; segments must not overlap there
 * @param count       bytes of a segment, then repetitions per level: stride_levels + 1 numbers
 */
ARMCI_FUNCTION_(int, PutS,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int proc));
/** As ARMCI_PutS(), from process `proc` to the caller. */
ARMCI_FUNCTION_(int, GetS,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int proc));
/** Accumulates a box, as ARMCI_PutS() and ARMCI_Acc(). */
ARMCI_FUNCTION_(int, AccS,
                (int datatype, void* scale, void* src, int* src_stride, void* dst, int* dst_stride,
                 int* count, int stride_levels, int proc));

/** Copies the segments of `length` descriptors from the caller to process `proc`. */
ARMCI_FUNCTION_(int, PutV, (armci_giov_t * iov, int length, int proc));
/** As ARMCI_PutV(), from process `proc` to the caller. */
ARMCI_FUNCTION_(int, GetV, (armci_giov_t * iov, int length, int proc));
/** Accumulates as ARMCI_PutV(); a segment may be the destination more than once. */
ARMCI_FUNCTION_(int, AccV, (int datatype, void* scale, armci_giov_t* iov, int length, int proc));

/**
 * As ARMCI_Put(), then sets a flag in process `proc`: a reader that sees `value` in it sees the
 * data.
 */
ARMCI_FUNCTION_(int, Put_flag, (void* src, void* dst, int bytes, int* flag, int value, int proc));
/** As ARMCI_PutS() and ARMCI_Put_flag(). */
ARMCI_FUNCTION_(int, PutS_flag,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int* flag, int value, int proc));
/** As ARMCI_PutS_flag(). */
ARMCI_FUNCTION_(int, PutS_flag_dir,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int* flag, int value, int proc));

/** Puts one value. */
ARMCI_FUNCTION_(int, PutValueInt, (int src, void* dst, int proc));
ARMCI_FUNCTION_(int, PutValueLong, (long src, void* dst, int proc));
ARMCI_FUNCTION_(int, PutValueFloat, (float src, void* dst, int proc));
ARMCI_FUNCTION_(int, PutValueDouble, (double src, void* dst, int proc));
/** @return one value from process `proc` */
ARMCI_FUNCTION_(int, GetValueInt, (void* src, int proc));
ARMCI_FUNCTION_(long, GetValueLong, (void* src, int proc));
ARMCI_FUNCTION_(float, GetValueFloat, (void* src, int proc));
ARMCI_FUNCTION_(double, GetValueDouble, (void* src, int proc));

/**
 * Changes a word of process `proc` atomically.
 *
 * @param op     ARMCI_FETCH_AND_ADD or ARMCI_SWAP of an int, or with _LONG of a long
 * @param ploc   in the caller: gets the former value of the word; for a swap it has the new value
 *               before the call
 * @param prem   the word, in process `proc`
 * @param value  the value to add
 */
ARMCI_FUNCTION_(int, Rmw, (int op, void* ploc, void* prem, int value, int proc));

/* ---- Transfers under way ------------------------------------------------------------------- */

/** Makes a handle ready for use. */
ARMCI_FUNCTION_(void, INIT_HANDLE, (armci_hdl_t * handle));
/**
 * Makes a handle collect the operations that are started with it, until it has been waited for.
 * Between hosts they share messages. The messages are sent when there are many operations, or when
 * the handle is waited for or tested; both then wait until the operations are complete in the
 * caller. The thread that started the operations must wait.
 */
ARMCI_FUNCTION_(void, SET_AGGREGATE_HANDLE, (armci_hdl_t * handle));
/** Ends the collecting of ARMCI_SET_AGGREGATE_HANDLE(). */
ARMCI_FUNCTION_(void, UNSET_AGGREGATE_HANDLE, (armci_hdl_t * handle));

/* As the calls above, without waiting for completion. With a null handle, ARMCI_WaitProc() and
 * ARMCI_WaitAll() complete the operation. */
ARMCI_FUNCTION_(int, NbPut, (void* src, void* dst, int bytes, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbGet, (void* src, void* dst, int bytes, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbAcc,
                (int datatype, void* scale, void* src, void* dst, int bytes, int proc,
                 armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbPutS,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbGetS,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbAccS,
                (int datatype, void* scale, void* src, int* src_stride, void* dst, int* dst_stride,
                 int* count, int stride_levels, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbPutV, (armci_giov_t * iov, int length, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbGetV, (armci_giov_t * iov, int length, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbAccV,
                (int datatype, void* scale, armci_giov_t* iov, int length, int proc,
                 armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbPutValueInt, (int src, void* dst, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbPutValueLong, (long src, void* dst, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbPutValueFloat, (float src, void* dst, int proc, armci_hdl_t* handle));
ARMCI_FUNCTION_(int, NbPutValueDouble, (double src, void* dst, int proc, armci_hdl_t* handle));

/** Waits for the operations of a handle. */
ARMCI_FUNCTION_(int, Wait, (armci_hdl_t * handle));
/** @return 0 if the operations of a handle are complete, else 1. Does not block. */
ARMCI_FUNCTION_(int, Test, (armci_hdl_t * handle));
/** Waits for all operations of the caller on one process, with and without handle. */
ARMCI_FUNCTION_(int, WaitProc, (int proc));
/** Waits for all operations of the caller. */
ARMCI_FUNCTION_(int, WaitAll, (void));

/* ---- Completion at the target --------------------------------------------------------------- */

/** Waits until everything that the caller has put is complete at one process. */
ARMCI_FUNCTION_(void, Fence, (int proc));
/** As ARMCI_Fence(), for all processes. */
ARMCI_FUNCTION_(void, AllFence, (void));
/** As ARMCI_Fence(), for the members of a group. */
ARMCI_FUNCTION_(void, GroupFence, (ARMCI_Group * group));
/** Calls ARMCI_AllFence() and waits for all processes; collective. */
ARMCI_FUNCTION_(void, Barrier, (void));

/* ---- Mutexes -------------------------------------------------------------------------------- */

/** Makes `count` mutexes in the caller; collective; `count` may differ. */
ARMCI_FUNCTION_(int, Create_mutexes, (int count));
/** Frees all mutexes; collective. */
ARMCI_FUNCTION_(int, Destroy_mutexes, (void));
/**
 * Acquires mutex `mutex` of process `proc`. If its owner died, the protected data may be half
 * changed: the job ends through ARMCI_Error().
 */
ARMCI_FUNCTION_(void, Lock, (int mutex, int proc));
/** Releases the mutex; the caller's earlier puts are complete. */
ARMCI_FUNCTION_(void, Unlock, (int mutex, int proc));

/* ---- Groups --------------------------------------------------------------------------------- */

/** Makes a group of the listed members of the default group; all of them must call it. */
ARMCI_FUNCTION_(void, Group_create, (int size, int* pid_list, ARMCI_Group* group));
/** As ARMCI_Group_create(), for members of `parent`; `pid_list` has ranks in it. */
ARMCI_FUNCTION_(void, Group_create_child,
                (int size, int* pid_list, ARMCI_Group* group, ARMCI_Group* parent));
/** Frees a group; collective over it. In a process that is not a member it does nothing. */
ARMCI_FUNCTION_(void, Group_free, (ARMCI_Group * group));
/** @return 0 and the caller's rank; not 0 and -1 if it is not a member */
ARMCI_FUNCTION_(int, Group_rank, (ARMCI_Group * group, int* rank));
ARMCI_FUNCTION_(void, Group_size, (ARMCI_Group * group, int* size));
/** Sets the group from which ARMCI_Group_create() takes members; at first the world. */
ARMCI_FUNCTION_(void, Group_set_default, (ARMCI_Group * group));
ARMCI_FUNCTION_(void, Group_get_default, (ARMCI_Group * group));
ARMCI_FUNCTION_(void, Group_get_world, (ARMCI_Group * group));
/** @return a member's rank in the job */
ARMCI_FUNCTION_(int, Absolute_id, (ARMCI_Group * group, int group_rank));

/** @return 1 if the caller can access memory of `proc` directly, else 0. */
ARMCI_FUNCTION_(int, Same_node, (int proc));

#undef ARMCI_FUNCTION_

/* ---- Domains: processes that can access each other's memory directly ------------------------ */

/** @return the number of processes of domain `id`, or of the caller's domain if negative */
int armci_domain_nprocs(armci_domain_t domain, int id);
/** @return the domain of a process */
int armci_domain_id(armci_domain_t domain, int glob_proc_id);
/** @return process `loc_proc_id` of domain `id` (negative: the caller's) */
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int loc_proc_id);
/** @return the caller's domain */
int armci_domain_my_id(armci_domain_t domain);
/** @return the number of domains, which are numbered from 0 */
int armci_domain_count(armci_domain_t domain);
/** @return 1 if a process is in the caller's domain */
int armci_domain_same_id(armci_domain_t domain, int proc);

/* ---- Notifications and strided copies -------------------------------------------------------- */

/**
 * Notifies a process: it sees the caller's earlier puts once it has waited for the notification.
 * @return the number of notifications so far
 */
int armci_notify(int proc);
/**
 * Waits for one more notification from a process. `*count` becomes the number of its notifications
 * so far.
 */
int armci_notify_wait(int proc, int* count);
/** Copies a box, described as for ARMCI_PutS(), to contiguous memory `buf`. */
void armci_write_strided(void* ptr, int stride_levels, int* stride, int* count, char* buf);
/** Copies contiguous memory `buf` to a box. */
void armci_read_strided(void* ptr, int stride_levels, int* stride, int* count, char* buf);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#include <armci_msg.h>

#endif
