/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARMCI_H
#define MOBIUS_ARMCI_H

/**
 * @file
 * ARMCI: remote memory copy for distributed arrays (paper 5), over Möbius.
 *
 * Sizes of handles and groups and values of constants are those of ARMCI-MPI, so that libraries
 * compiled for it, such as Debian's Global Arrays, link with this one. docs/fronts/armci.md says
 * what holds beyond that.
 *
 * - **Addresses.** Remote addresses are those that ARMCI_Malloc() gave, or lie behind them; `proc`
 *   is a rank of the job. Local buffers are any memory.
 * - **Completion.** A call without `Nb` returns when the local buffer may be reused (put,
 *   accumulate) or has the data (get); one with, when ARMCI_Wait() and its kin do. Either is
 *   complete at the target, visible to all, after ARMCI_Fence() of it.
 * - **Order.** Operations of one process on one target take effect in the order of the calls, in
 *   the eyes of that process. For others, ARMCI_Fence() and the calls with a flag order them.
 * - **Accumulate** is atomic per element against other accumulates of the type, ARMCI_Rmw() against
 *   other ARMCI_Rmw(), from any process and thread.
 * - **Errors.** Arguments that make no sense end the job through ARMCI_Error(), with one line that
 *   names function, rank and value. Functions of type `int` return 0 for success; only allocation
 *   returns anything else, in every process alike.
 * - **Threads.** Every call but those that are collective may be made by many threads at once.
 *
 * Every function ARMCI_Xyz has a twin PARMCI_Xyz, and is a weak alias of it: a tool may define
 * ARMCI_Xyz, count, and call the twin.
 */

/* As ARMCI-MPI's header does, for programs that rely on it. Without MPI, or with ARMCI_NO_MPI,
 * everything but the functions that take a communicator is there. */
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

/** Types of elements, for accumulate. */
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

/** Most stride levels of a strided transfer: boxes have one dimension more. */
#define ARMCI_MAX_STRIDE_LEVEL 8

/** An operation under way. Initialised with ARMCI_INIT_HANDLE(). */
typedef struct armci_hdl_s {
  int target;    /**< the library's */
  int aggregate; /**< 1 while it collects operations */
} armci_hdl_t;
typedef armci_hdl_t armci_req_t;

/** Segments of equal length, at listed addresses. */
typedef struct {
  void** src_ptr_array; /**< where each is read */
  void** dst_ptr_array; /**< where each is written */
  int bytes;            /**< of each */
  int ptr_array_len;    /**< how many */
} armci_giov_t;

/** A group of processes. It may be copied. All members but the first are the library's. */
#if defined(MPI_VERSION) && !defined(ARMCI_NO_MPI)
typedef MPI_Comm armci_comm_;
#else
typedef void* armci_comm_;
#endif
typedef struct {
  armci_comm_ comm; /**< of the members, if MPI was initialised before ARMCI */
  armci_comm_ reserved_comm_;
  int* reserved_pointers_[2];
  int reserved_[2];
} ARMCI_Group;

/** Memory of one process, for the others: ARMCI_Memget(). */
typedef struct armci_meminfo_ds {
  char* armci_addr; /**< for ARMCI operations on process `cpid` */
  char* addr;       /**< in its own address space */
  unsigned long size;
  int cpid; /**< whose it is */
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

/** Joins the job; collective. Under an MPI's launcher MPI may be initialised before, after or not
 * at all. Calls are counted: as many ARMCI_Finalize() end it. */
ARMCI_FUNCTION_(int, Init, (void));
/** As ARMCI_Init(). */
ARMCI_FUNCTION_(int, Init_args, (int* argc, char*** argv));
/** As ARMCI_Init(); any level of thread support that MPI knows may be asked for, all are had. */
ARMCI_FUNCTION_(int, Init_thread, (int requested));
#if defined(MPI_VERSION) && !defined(ARMCI_NO_MPI)
/** As ARMCI_Init(), for the processes of a communicator, which are named by their ranks in it; it
 * is collective over that. Others may start with communicators of their own. MPI must be
 * initialised. */
ARMCI_FUNCTION_(int, Init_mpi_comm, (MPI_Comm comm));
/** As ARMCI_Init_mpi_comm() and ARMCI_Init_thread(). */
ARMCI_FUNCTION_(int, Init_thread_comm, (int requested, MPI_Comm comm));
#endif
/** @return 1 between ARMCI_Init() and the last ARMCI_Finalize(), else 0. */
ARMCI_FUNCTION_(int, Initialized, (void));
/** Completes everything and leaves the job; collective. */
ARMCI_FUNCTION_(int, Finalize, (void));
/** Does nothing: nothing outlives a process, however it ends. Callable from signal handlers. */
ARMCI_FUNCTION_(void, Cleanup, (void));
/** Ends the job: prints rank, message and code, and exits with `code` (1 if it is no exit code). */
ARMCI_FUNCTION_(void, Error, (const char* message, int code));

/* ---- Memory -------------------------------------------------------------------------------- */

/**
 * Allocates memory in every process; collective.
 *
 * @param base_ptrs  out: the address of each process' part, null for one of no bytes
 * @param bytes      of the caller's part, may differ and may be 0
 * @return 0, or not 0 in every process if the host lacks memory
 */
ARMCI_FUNCTION_(int, Malloc, (void** base_ptrs, armci_size_t bytes));
/** Frees it in every process; collective. `ptr` is the caller's part, null if it has no bytes. */
ARMCI_FUNCTION_(int, Free, (void* ptr));
/** As ARMCI_Malloc(), in the members of a group; `base_ptrs` is by rank in it. */
ARMCI_FUNCTION_(int, Malloc_group, (void** base_ptrs, armci_size_t bytes, ARMCI_Group* group));
/** As ARMCI_Free(), in the members of the group that allocated it. */
ARMCI_FUNCTION_(int, Free_group, (void* ptr, ARMCI_Group* group));
/** As ARMCI_Malloc(); there is one kind of memory, whatever device is named. */
ARMCI_FUNCTION_(int, Malloc_memdev, (void** base_ptrs, armci_size_t bytes, const char* device));
/** As ARMCI_Malloc_memdev(), in the members of a group. */
ARMCI_FUNCTION_(int, Malloc_group_memdev,
                (void** base_ptrs, armci_size_t bytes, ARMCI_Group* group, const char* device));
/** As ARMCI_Free(). */
ARMCI_FUNCTION_(int, Free_memdev, (void* ptr));
/** Allocates memory of the caller, not collective; null if the host lacks it. */
ARMCI_FUNCTION_(void*, Malloc_local, (armci_size_t bytes));
/** Frees it. Null does nothing. */
ARMCI_FUNCTION_(int, Free_local, (void* ptr));
/** Allocates memory of the caller that others can reach when they are sent `*info`. */
ARMCI_FUNCTION_(void, Memget, (size_t bytes, armci_meminfo_t* info, int flags));
/** @return where the caller can load and store it, `offset` bytes behind its start; null if it is
 * on another host. */
ARMCI_FUNCTION_(void*, Memat, (armci_meminfo_t * info, long offset));
/** Ends the use of ARMCI_Memat(). */
ARMCI_FUNCTION_(void, Memdt, (armci_meminfo_t * info, long offset));
/** Frees it; called by its owner. */
ARMCI_FUNCTION_(void, Memctl, (armci_meminfo_t * info));
/** Announces loads and stores to the caller's part that holds `ptr`: what others have completed is
 *  seen. */
ARMCI_FUNCTION_(void, Access_begin, (void* ptr));
/** Ends them: others see them. */
ARMCI_FUNCTION_(void, Access_end, (void* ptr));
/** Does nothing: shared memory has no limit of its own. */
ARMCI_FUNCTION_(void, Set_shm_limit, (unsigned long bytes));
/** @return 1 if addresses of ARMCI_Malloc() in processes of the caller's domain are valid here. */
ARMCI_FUNCTION_(int, Uses_shm, (void));
/** As ARMCI_Uses_shm(), of the members of a group. */
ARMCI_FUNCTION_(int, Uses_shm_grp, (ARMCI_Group * group));
/** Copies within the caller's address space; the two may overlap. */
ARMCI_FUNCTION_(void, Copy, (void* src, void* dst, int bytes));

/* ---- Transfers ----------------------------------------------------------------------------- */

/** Copies `bytes` bytes from `src` here to `dst` there. */
ARMCI_FUNCTION_(int, Put, (void* src, void* dst, int bytes, int proc));
/** Copies `bytes` bytes from `src` there to `dst` here. */
ARMCI_FUNCTION_(int, Get, (void* src, void* dst, int bytes, int proc));
/** Adds `scale` times the elements at `src` here to those at `dst` there. `datatype` is one of
 *  ARMCI_Acc_e, `scale` points to one such element. */
ARMCI_FUNCTION_(int, Acc, (int datatype, void* scale, void* src, void* dst, int bytes, int proc));

/**
 * Copies a box of bytes.
 *
 * Segment (i1 … in) starts i1 × stride[0] + … + in × stride[n-1] bytes behind the first, where n is
 * `stride_levels` and i(k) counts to count[k].
 *
 * @param src         first segment, here
 * @param src_stride  `stride_levels` strides in bytes
 * @param dst         first segment, there
 * @param dst_stride  as src_stride; segments must not overlap there
 * @param count       bytes of a segment, then repetitions per level: stride_levels + 1 numbers
 */
ARMCI_FUNCTION_(int, PutS,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int proc));
/** As ARMCI_PutS(), from there to here. */
ARMCI_FUNCTION_(int, GetS,
                (void* src, int* src_stride, void* dst, int* dst_stride, int* count,
                 int stride_levels, int proc));
/** As ARMCI_PutS(), accumulating as ARMCI_Acc(). */
ARMCI_FUNCTION_(int, AccS,
                (int datatype, void* scale, void* src, int* src_stride, void* dst, int* dst_stride,
                 int* count, int stride_levels, int proc));

/** Copies the segments of `length` descriptors from here to there. */
ARMCI_FUNCTION_(int, PutV, (armci_giov_t * iov, int length, int proc));
/** As ARMCI_PutV(), from there to here. */
ARMCI_FUNCTION_(int, GetV, (armci_giov_t * iov, int length, int proc));
/** As ARMCI_PutV(), accumulating; a segment may be the destination more than once. */
ARMCI_FUNCTION_(int, AccV, (int datatype, void* scale, armci_giov_t* iov, int length, int proc));

/** As ARMCI_Put(), then sets a flag there: who sees `value` in it sees the data. */
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
/** @return one value from there. */
ARMCI_FUNCTION_(int, GetValueInt, (void* src, int proc));
ARMCI_FUNCTION_(long, GetValueLong, (void* src, int proc));
ARMCI_FUNCTION_(float, GetValueFloat, (void* src, int proc));
ARMCI_FUNCTION_(double, GetValueDouble, (void* src, int proc));

/**
 * Changes a word there, atomically.
 *
 * @param op     ARMCI_FETCH_AND_ADD or ARMCI_SWAP of an int, or with _LONG of a long
 * @param ploc   here: gets what the word held; of a swap also the new value
 * @param prem   the word, there
 * @param value  what is added
 */
ARMCI_FUNCTION_(int, Rmw, (int op, void* ploc, void* prem, int value, int proc));

/* ---- Transfers under way ------------------------------------------------------------------- */

/** Makes a handle ready for use. */
ARMCI_FUNCTION_(void, INIT_HANDLE, (armci_hdl_t * handle));
/** Lets a handle collect the operations that are started with it, until it was waited for. Between
 * hosts they share messages, which leave when the handle is waited for or tested, both of which
 * wait until they are complete here, or when there are many. The thread that started them waits. */
ARMCI_FUNCTION_(void, SET_AGGREGATE_HANDLE, (armci_hdl_t * handle));
/** Ends that. */
ARMCI_FUNCTION_(void, UNSET_AGGREGATE_HANDLE, (armci_hdl_t * handle));

/* As the calls above. With a null handle they are completed by ARMCI_WaitProc() and
 * ARMCI_WaitAll(). */
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
/** As ARMCI_Fence(), at all processes. */
ARMCI_FUNCTION_(void, AllFence, (void));
/** As ARMCI_Fence(), at the members of a group. */
ARMCI_FUNCTION_(void, GroupFence, (ARMCI_Group * group));
/** ARMCI_AllFence(), and waits for all processes; collective. */
ARMCI_FUNCTION_(void, Barrier, (void));

/* ---- Mutexes -------------------------------------------------------------------------------- */

/** Makes `count` mutexes in the caller; collective, `count` may differ. */
ARMCI_FUNCTION_(int, Create_mutexes, (int count));
/** Frees them all; collective. */
ARMCI_FUNCTION_(int, Destroy_mutexes, (void));
/** Acquires mutex `mutex` of process `proc`. If its owner died, what it protects may be half
 *  changed: the job ends through ARMCI_Error(). */
ARMCI_FUNCTION_(void, Lock, (int mutex, int proc));
/** Releases it; what the caller put before is complete. */
ARMCI_FUNCTION_(void, Unlock, (int mutex, int proc));

/* ---- Groups --------------------------------------------------------------------------------- */

/** Makes a group of the listed members of the default group, which all call it. */
ARMCI_FUNCTION_(void, Group_create, (int size, int* pid_list, ARMCI_Group* group));
/** As ARMCI_Group_create(), of members of `parent`; `pid_list` has ranks in it. */
ARMCI_FUNCTION_(void, Group_create_child,
                (int size, int* pid_list, ARMCI_Group* group, ARMCI_Group* parent));
/** Frees a group; collective over it. In a process that is not a member it does nothing. */
ARMCI_FUNCTION_(void, Group_free, (ARMCI_Group * group));
/** @return 0 and the caller's rank, not 0 and -1 if it is no member. */
ARMCI_FUNCTION_(int, Group_rank, (ARMCI_Group * group, int* rank));
ARMCI_FUNCTION_(void, Group_size, (ARMCI_Group * group, int* size));
/** Chooses the group that ARMCI_Group_create() takes from; the world at first. */
ARMCI_FUNCTION_(void, Group_set_default, (ARMCI_Group * group));
ARMCI_FUNCTION_(void, Group_get_default, (ARMCI_Group * group));
ARMCI_FUNCTION_(void, Group_get_world, (ARMCI_Group * group));
/** @return the rank in the job of a member. */
ARMCI_FUNCTION_(int, Absolute_id, (ARMCI_Group * group, int group_rank));

/** @return 1 if the caller can access memory of `proc` directly, else 0. */
ARMCI_FUNCTION_(int, Same_node, (int proc));

#undef ARMCI_FUNCTION_

/* ---- Domains: processes that can access each other's memory directly ------------------------ */

/** @return processes of domain `id`, of the caller's if negative */
int armci_domain_nprocs(armci_domain_t domain, int id);
/** @return domain of a process */
int armci_domain_id(armci_domain_t domain, int glob_proc_id);
/** @return process `loc_proc_id` of domain `id` (negative: the caller's) */
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int loc_proc_id);
/** @return the caller's domain */
int armci_domain_my_id(armci_domain_t domain);
/** @return how many domains there are; they are numbered from 0 */
int armci_domain_count(armci_domain_t domain);
/** @return 1 if a process is in the caller's domain */
int armci_domain_same_id(armci_domain_t domain, int proc);

/* ---- Notifications and strided copies -------------------------------------------------------- */

/** Tells a process that what the caller has put to it is there. @return how often it did. */
int armci_notify(int proc);
/** Waits for one more notification from a process. `*count` becomes how many there were. */
int armci_notify_wait(int proc, int* count);
/** Copies a box as ARMCI_PutS() knows it to contiguous memory `buf`. */
void armci_write_strided(void* ptr, int stride_levels, int* stride, int* count, char* buf);
/** Copies it back. */
void armci_read_strided(void* ptr, int stride_levels, int* stride, int* count, char* buf);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#include <armci_msg.h>

#endif
