/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_MEMORY_H
#define MOBIUS_MEMORY_H

/**
 * @file
 * Memory that other processes can read and write.
 *
 * An allocation gives every process of the job, or of a team, a part of its own. A part is named by
 * the address it has in the process that owns it: that address, with the owner's rank, is what put
 * and get take. Where the window could be had at one address in all host-mates (the normal case,
 * see `mobius info`), a host-mate's address is also valid in the caller: for the parts of an
 * allocation made together from when it is made, for any other memory from when mob_ptr(), a put or
 * a get reached it. Portable programs ask mob_ptr().
 */

#include <mobius/job.h>
#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One collective allocation. Owned by the library from mob_mem_alloc() to mob_mem_free(). */
typedef struct mob_mem* mob_mem_t;

/**
 * Allocates remotely accessible memory, zero-filled.
 *
 * Collective over the job, blocks until every process called it. The memory is reserved, not only
 * promised: using it cannot fail later for lack of memory. Nothing is created in any file system.
 *
 * @param bytes  size of the caller's own part in bytes; may differ between ranks and may be 0
 * @param mem    out: the allocation; the same order of allocations gives the same allocation in
 *               every process
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize;
 *         MOB_ERR_ARGUMENT  `mem` null;
 *         MOB_ERR_RANGE     `bytes` so large that offsets in the window would overflow;
 *         MOB_ERR_MEMORY    the host lacks memory for all parts, or the window is full;
 *         MOB_ERR_PEER      another process got one of these errors; MOB_ERR_RANGE may be for all.
 *         If one process fails, all fail, and nothing stays allocated.
 *
 * Alignment: parts start on a 2 MiB boundary of the address space (one page at least).
 * Thread safety: single per job: all processes make their collective calls in the same order.
 */
MOB_API mob_status_t mob_mem_alloc(size_t bytes, mob_mem_t* mem);

/**
 * Allocates remotely accessible memory, zero-filled, in the members of a team.
 *
 * Collective over the team, blocks until every member called it; else as mob_mem_alloc(), which is
 * this for the world. Parts are named by the ranks of the job. Processes that are not members reach
 * them too, given rank and address.
 *
 * @param team       the team; it cannot be freed before its allocations
 * @param bytes      size of the caller's own part in bytes; may differ between ranks and may be 0
 * @param alignment  of each part: a power of two up to 2 MiB, or 0. Parts start on 2 MiB boundaries
 *                   whatever is asked for; programs that depend on an alignment say so here
 * @param mem        out: the allocation
 * @return as mob_mem_alloc(), also MOB_ERR_HANDLE (`team` is not live; the call returns at once)
 *         and MOB_ERR_ARGUMENT for a wrong alignment
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_team_alloc(mob_team_t team, size_t bytes, size_t alignment,
                                    mob_mem_t* mem);

/**
 * Tells every member of a team one address of each member (compare LAPI_Address_init, paper 1 §2).
 *
 * Collective over the team, blocks until every member called it; a barrier of the team.
 *
 * @param team  the team
 * @param mine  any address, or null; it is passed on as it is
 * @param all   out: array of as many addresses as the team has members, by rank in the team
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (`team`), MOB_ERR_ARGUMENT (`all` null at a rank;
 *         MOB_ERR_PEER at the others), MOB_ERR_PEER (a member died)
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_publish(mob_team_t team, const void* mine, void** all);

/**
 * Frees an allocation in every member of the team that made it.
 *
 * Collective over that team. Completes what the calling thread has started, as mob_flush_all(), and
 * waits until every member called it, so that no operation started before can hit memory that is
 * gone; operations that other threads still run on it are an error of the caller. Also waits until
 * processes of other hosts that were let write there (MOBIUS_RMA_KEYS) have heard that they may not
 * any more: members or not, their own threads see to it.
 *
 * @param mem  the allocation; null does nothing if every process of the job passes null
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_HANDLE (not live: freed before or never allocated; the
 *         call returns at once, without waiting for the others); MOB_ERR_ARGUMENT (the members pass
 *         different allocations of one team, or some of them null: every member fails, and nothing
 *         is freed); MOB_ERR_PEER (a member died; the allocation is freed); or the first error of
 *         an operation without a handle (the allocation is freed)
 *
 * Thread safety: single per job, as mob_mem_alloc().
 */
MOB_API mob_status_t mob_mem_free(mob_mem_t mem);

/**
 * Address of a part, or of a place in it, in the address space of its owner.
 *
 * @param mem     a live allocation
 * @param rank    the owner
 * @param offset  bytes from the start of the part, at most the size of the part
 * @param address out: the address to give to put and get together with `rank`
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK, MOB_ERR_RANGE, MOB_ERR_ARGUMENT
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_mem_address(mob_mem_t mem, mob_rank_t rank, size_t offset, void** address);

/**
 * Size of a part.
 *
 * @param mem   a live allocation
 * @param rank  the owner
 * @param bytes out: the size it gave to mob_mem_alloc()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK, MOB_ERR_ARGUMENT
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_mem_bytes(mob_mem_t mem, mob_rank_t rank, size_t* bytes);

/**
 * The calling process' own part.
 *
 * @param mem  a live allocation
 * @return its address; null (with mob_last_error()) if `mem` is not live, or the part is empty
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API void* mob_mem_local(mob_mem_t mem);

/**
 * Allocates memory that host-mates can read and write, for this process alone: malloc() for memory
 * that is a target. Not collective: pass the address to whom it concerns.
 *
 * @param bytes      size, from 1 byte; 0 counts as 1. A block is rounded up to 16 bytes, and an
 *                   access beyond its end is noticed only where it leaves the memory that Möbius
 *                   holds for such blocks
 * @param alignment  of the block: a power of two up to 2 MiB; 0 for the 16 bytes that every block
 *                   has at least
 * @param pointer    out: the block, contents undefined; owned by the caller until mob_local_free()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (`pointer` null, wrong alignment),
 *         MOB_ERR_MEMORY (the host lacks memory, or the window is full). The memory is reserved:
 *         using it cannot fail later.
 *
 * Blocks of a megabyte or more have memory of their own, which goes back to the system when they
 * are freed. mob_finalize() frees what is left.
 *
 * Local, does not block. Thread safety: any. Compare ARMCI_Malloc_local and LAPI's use of malloc().
 */
MOB_API mob_status_t mob_local_alloc(size_t bytes, size_t alignment, void** pointer);

/**
 * Makes a block longer or shorter, and moves it where it must.
 *
 * @param pointer  from mob_local_alloc() or mob_local_realloc(); null allocates
 * @param bytes    new size; 0 counts as 1
 * @param result   out: the block, whose contents are those of the old one as far as both reach;
 *                 aligned to 16 bytes where it moved. May be the address of the variable that holds
 *                 `pointer`
 * @return MOB_OK; MOB_ERR_STATE, MOB_ERR_ARGUMENT (`result` null), MOB_ERR_HANDLE (`pointer` is no
 *         live block of this process), MOB_ERR_MEMORY; after an error the block is as before
 *
 * Nobody may access the block meanwhile. Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_local_realloc(void* pointer, size_t bytes, void** result);

/**
 * Frees a block. Operations of others on it must be complete, and none may come: one that does may
 * be refused, be lost, or hit what lies there then.
 *
 * @param pointer  from mob_local_alloc() or mob_local_realloc(); null does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (freed before, or not such a block of this process)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_local_free(void* pointer);

/**
 * A pointer through which the caller can load and store a host-mate's memory directly.
 *
 * @param rank     the owner of the memory
 * @param address  an address in the owner's part of a live allocation, or in memory that it exposed
 *                 with MOB_EXPOSE_REMAP
 * @param pointer  out: valid in the calling process until the allocation is freed, or the memory is
 *                 withdrawn
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_RANK (not a rank, or not a host-mate),
 *         MOB_ERR_RANGE (in neither of that rank), MOB_ERR_ARGUMENT
 *
 * Local, does not block. Thread safety: any. Compare OpenSHMEM 1.5 §9.4 shmem_ptr and MPI-4
 * MPI_Win_shared_query.
 */
MOB_API mob_status_t mob_ptr(mob_rank_t rank, const void* address, void** pointer);

#ifdef __cplusplus
}
#endif
#endif
