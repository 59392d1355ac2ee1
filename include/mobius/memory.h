/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MEMORY_H
#define MOBIUS_MEMORY_H

/**
 * @file
 * Memory that other processes can read and write.
 *
 * An allocation gives every process of the job, or of a team, a *part* of its own. Put and get name
 * a place in a part by the owner's rank and the address that the place has in the owner.
 *
 * The library tries to map the window at one address in all local peers (the normal case, see
 * `mobius info`). Then an address of a local peer is also valid in the caller: for a collective
 * allocation from the start, for any other memory once mob_ptr(), a put or a get has reached it.
 * Portable programs call mob_ptr(). */

#include <mobius/job.h>
#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A collective allocation. The library owns it from mob_mem_alloc() to mob_mem_free(). */
typedef struct mob_mem* mob_mem_t;

/**
 * Allocates zero-filled memory that other processes can access.
 *
 * Collective over the job: blocks until every process has called it. The memory is reserved, not
 * only promised: later use cannot fail for lack of memory. Nothing is created in any file system.
 *
 * @param bytes  size of the caller's part in bytes; may differ between ranks and may be 0
 * @param mem    out: the allocation. The n-th allocation of every process is the same allocation.
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize;
 *         MOB_ERR_ARGUMENT  `mem` is null;
 *         MOB_ERR_RANGE     `bytes` is so large that offsets in the window would overflow;
 *         MOB_ERR_MEMORY    the host lacks memory for all parts, or the window is full;
 *         MOB_ERR_PEER      another process got one of these errors (all may get MOB_ERR_RANGE).
 *         If one process fails, all fail, and nothing stays allocated.
 *
 * Alignment: a part starts on a 2 MiB boundary of the address space and takes at least one page.
 * Thread safety: single per job: all processes make their collective calls in the same order.
 */
MOB_API mob_status_t mob_mem_alloc(size_t bytes, mob_mem_t* mem);

/**
 * Allocates zero-filled memory that other processes can access, in the members of a team.
 *
 * Collective over the team: blocks until every member has called it. Otherwise as mob_mem_alloc(),
 * which is this call for the team of all processes. Parts are named by ranks of the job. Processes
 * outside the team can access them too, given rank and address.
 *
 * @param team       the team; must not be freed before its allocations
 * @param bytes      size of the caller's part in bytes; may differ between ranks and may be 0
 * @param alignment  of each part: a power of two up to 2 MiB, or 0. Parts start on 2 MiB boundaries
 *                   in any case; a program that depends on an alignment states it here.
 * @param mem        out: the allocation
 * @return as mob_mem_alloc(); also MOB_ERR_HANDLE (`team` is not live; the call returns at once)
 *         and MOB_ERR_ARGUMENT for an invalid alignment
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_team_alloc(mob_team_t team, size_t bytes, size_t alignment,
                                    mob_mem_t* mem);

/**
 * Gives every member of a team one address of each member (compare LAPI_Address_init, paper 1 §2).
 *
 * Collective over the team: blocks until every member has called it, and is a barrier of the team.
 *
 * @param team  the team
 * @param mine  any address, or null; passed on unchanged
 * @param all   out: array with one address per member, by rank in the team; the caller owns it
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`all` is null at a
 *         rank; the others get MOB_ERR_PEER), MOB_ERR_PEER (a member died)
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_publish(mob_team_t team, const void* mine, void** all);

/**
 * Frees an allocation in every member of the team that made it.
 *
 * Collective over that team. Completes what the calling thread has started, as mob_flush_all(), and
 * waits until every member has called it, so that no earlier operation can reach freed memory. It
 * is an error of the caller if other threads still run operations on the allocation. The call also
 * waits until all processes of other hosts that had permission to write to it (MOBIUS_RMA_KEYS),
 * members or not, know that the permission has ended; their library threads answer.
 *
 * @param mem  the allocation; null does nothing if every process of the job passes null
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_HANDLE (not live: freed before or never allocated; returns
 *         at once, without waiting for the others); MOB_ERR_ARGUMENT (the members pass different
 *         allocations of one team, or some pass null: every member fails, and nothing is freed);
 *         MOB_ERR_PEER (a member died; the allocation is freed); or the first error of an operation
 *         without a handle (the allocation is freed)
 *
 * Thread safety: single per team. Threads may free allocations of different teams at once.
 */
MOB_API mob_status_t mob_mem_free(mob_mem_t mem);

/**
 * Computes the address of a place in a part, in the address space of the part's owner.
 *
 * @param mem      a live allocation
 * @param rank     the owner
 * @param offset   bytes from the start of the part, at most the size of the part
 * @param address  out: the address to give to put and get together with `rank`
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK, MOB_ERR_RANGE, MOB_ERR_ARGUMENT
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_mem_address(mob_mem_t mem, mob_rank_t rank, size_t offset, void** address);

/**
 * Tells the size of a part.
 *
 * @param mem    a live allocation
 * @param rank   the owner
 * @param bytes  out: the size that the owner gave to mob_mem_alloc()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK, MOB_ERR_ARGUMENT
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_mem_bytes(mob_mem_t mem, mob_rank_t rank, size_t* bytes);

/**
 * Returns the address of the calling process's own part.
 *
 * @param mem  a live allocation
 * @return the address, valid until mob_mem_free(); null if the part is empty, or if `mem` is not
 *         live (then mob_last_error() has the reason)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API void* mob_mem_local(mob_mem_t mem);

/**
 * Allocates memory for this process alone that its local peers can read and write: a malloc() for
 * memory that is a target. Not collective: the caller passes the address to the processes that need
 * it.
 *
 * @param bytes      size, from 1 byte; 0 counts as 1. A block is rounded up to 16 bytes. An access
 *                   beyond its end is detected only where it leaves the memory that Möbius holds
 *                   for such blocks.
 * @param alignment  of the block: a power of two up to 2 MiB; 0 for the minimum of 16 bytes
 * @param pointer    out: the block, contents undefined; the caller owns it until mob_local_free()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (`pointer` null, invalid alignment),
 *         MOB_ERR_MEMORY (the host lacks memory, or the window is full). The memory is reserved:
 *         later use cannot fail.
 *
 * A block of a megabyte or more has memory of its own, which goes back to the system when it is
 * freed, except 32 MiB that are kept for the next blocks of the same sizes. mob_finalize() frees
 * all remaining blocks.
 *
 * Local, does not block. Thread safety: any. Compare ARMCI_Malloc_local, and malloc() in LAPI
 * programs.
 */
MOB_API mob_status_t mob_local_alloc(size_t bytes, size_t alignment, void** pointer);

/**
 * Changes the size of a block, and moves the block if it must.
 *
 * @param pointer  from mob_local_alloc() or mob_local_realloc(); null allocates
 * @param bytes    new size; 0 counts as 1
 * @param result   out: the block, with the contents of the old one up to the smaller size; aligned
 *                 to 16 bytes if it moved. May be the address of the variable that holds `pointer`.
 * @return MOB_OK; MOB_ERR_STATE, MOB_ERR_ARGUMENT (`result` null), MOB_ERR_HANDLE (`pointer` is no
 *         live block of this process), MOB_ERR_MEMORY; after an error the block is as before
 *
 * No process may access the block during the call. Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_local_realloc(void* pointer, size_t bytes, void** result);

/**
 * Frees a block. All operations of other processes on it must be complete, and no new one may
 * start: it could be refused, be lost, or reach other data placed there.
 *
 * @param pointer  from mob_local_alloc() or mob_local_realloc(); null does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (freed before, or not such a block of this process)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_local_free(void* pointer);

/**
 * Returns a pointer through which the caller can load and store a local peer's memory directly.
 *
 * @param rank     the owner of the memory
 * @param address  an address in the owner's part of a live allocation, or in memory that it exposed
 *                 with MOB_EXPOSE_REMAP
 * @param pointer  out: valid in the calling process until the allocation is freed or the memory is
 *                 withdrawn
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK (not a rank, or not a local peer), MOB_ERR_RANGE
 *         (neither kind of memory of that rank), MOB_ERR_ARGUMENT
 *
 * Local, does not block. Thread safety: any. Compare OpenSHMEM 1.5 §9.4 shmem_ptr and MPI-4
 * MPI_Win_shared_query.
 */
MOB_API mob_status_t mob_ptr(mob_rank_t rank, const void* address, void** pointer);

#ifdef __cplusplus
}
#endif
#endif
