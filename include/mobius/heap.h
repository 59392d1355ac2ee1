/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_HEAP_H
#define MOBIUS_HEAP_H

/**
 * @file
 * Symmetric heaps. The members of a team allocate together, with the same calls in the same order,
 * and each block lies at the same offset in every member's part. A member can therefore compute
 * where a block is in another member from where it is in its own part. A heap grows up to a size
 * that is given when it is made.
 *
 * Every collective call here is a barrier of the team. It checks, at no further cost, that all
 * members ask for the same: calls that differ fail everywhere and change nothing. The bookkeeping
 * lies outside the heap, so a wild write into a heap cannot damage it.
 *
 * Compare OpenSHMEM 1.5 §9.3 (shmem_malloc and related calls). */

#include <mobius/job.h>
#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A symmetric heap. The library owns it from mob_heap_create() to mob_heap_destroy(). */
typedef struct mob_heap* mob_heap_t;

/**
 * Makes a heap.
 *
 * Collective over the team: blocks until every member has called it.
 *
 * @param team           the team; must not be freed before its heaps
 * @param initial_bytes  initial memory of each member's part, rounded up to 2 MiB; may be 0
 * @param maximum_bytes  size to which a part may grow, rounded up to 2 MiB; at least 1 and at least
 *                       `initial_bytes`. It costs address space of the window in every process and
 *                       one byte of shared memory per 128 KiB, not the memory itself.
 * @param heap           out: the heap
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize;
 *         MOB_ERR_HANDLE    `team` is not live (returns at once);
 *         MOB_ERR_ARGUMENT  `heap` is null, or the sizes differ between members or contradict each
 *                           other;
 *         MOB_ERR_RANGE     a size is larger than the window;
 *         MOB_ERR_MEMORY    the host lacks memory, or the window lacks room for the maximum of all
 *                           parts;
 *         MOB_ERR_PEER      another member got one of these errors.
 *         If one member fails, all fail, and nothing stays allocated.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_create(mob_team_t team, size_t initial_bytes, size_t maximum_bytes,
                                     mob_heap_t* heap);

/**
 * Frees a heap with every block in it.
 *
 * Collective over its team: completes what the calling thread has started, as mob_flush_all(), and
 * blocks until every member has called it.
 *
 * @param heap  the heap; null does nothing, without waiting
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_HANDLE (not live; returns at once); MOB_ERR_ARGUMENT (the
 *         members pass different heaps of one team: every member fails, and nothing is freed);
 *         MOB_ERR_PEER (a member died; the heap is freed); or the first error of an operation
 *         without a handle (the heap is freed)
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_destroy(mob_heap_t heap);

/**
 * Allocates a block in every member's part.
 *
 * Collective over the heap's team: blocks until every member has called it. The heap grows if it
 * must.
 *
 * @param heap     a live heap
 * @param bytes    size, the same everywhere; 0 gives a null pointer
 * @param pointer  out: the caller's block, aligned to 16 bytes, contents undefined; the team owns
 *                 it until mob_heap_free()
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize, or in a handler;
 *         MOB_ERR_HANDLE    `heap` is not live (returns at once);
 *         MOB_ERR_ARGUMENT  `pointer` is null, or the members' calls differ;
 *         MOB_ERR_MEMORY    the heap has no room: it has reached its maximum, or cannot grow for
 *                           lack of memory;
 *         MOB_ERR_PEER      another member got one of these errors, or died.
 *         After an error the heap is as before in every member.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_malloc(mob_heap_t heap, size_t bytes, void** pointer);

/**
 * Allocates `count` × `bytes` bytes as mob_heap_malloc(), and sets them to zero in every member
 * before it returns.
 *
 * @return as mob_heap_malloc(); MOB_ERR_MEMORY also if the product overflows
 *
 * Collective, blocks as mob_heap_malloc(). Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_calloc(mob_heap_t heap, size_t count, size_t bytes, void** pointer);

/**
 * Allocates a block as mob_heap_malloc(), with an alignment.
 *
 * @param alignment  a power of two up to 2 MiB, or 0 for 16 bytes; the same everywhere
 * @return as mob_heap_malloc(); MOB_ERR_ARGUMENT also for an invalid alignment
 *
 * Collective, blocks as mob_heap_malloc(). Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_align(mob_heap_t heap, size_t alignment, size_t bytes,
                                    void** pointer);

/**
 * Changes the size of a block in every member. If it must move the block, it moves it alike in all
 * members.
 *
 * Collective over the heap's team: completes what the calling thread has started, as
 * mob_flush_all(), and blocks until every member has called it. Operations on the block must be
 * complete before the call.
 *
 * @param heap     a live heap
 * @param pointer  the caller's block; null allocates
 * @param bytes    new size, the same everywhere; 0 frees the block and gives a null pointer
 * @param result   out: the caller's block, with the contents of the old one up to the smaller size.
 *                 May be the address of the variable that holds `pointer`.
 * @return as mob_heap_malloc(); also MOB_ERR_HANDLE if `pointer` is no block of the heap, or the
 *         first error of an operation without a handle (the others get MOB_ERR_PEER). After an
 *         error the block is as before.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_realloc(mob_heap_t heap, void* pointer, size_t bytes, void** result);

/**
 * Frees a block in every member.
 *
 * Collective over the heap's team. Completes what the calling thread has started, as
 * mob_flush_all(), and waits until every member has called it, so that no earlier operation can
 * reach a later block.
 *
 * @param heap     a live heap
 * @param pointer  the caller's block; null does nothing if every member passes null
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_HANDLE (`heap` is not live: returns at once; or `pointer`
 *         is no live block: the others get MOB_ERR_PEER); MOB_ERR_ARGUMENT (the members' blocks
 *         differ); MOB_ERR_PEER; or the first error of an operation without a handle (the others
 *         get MOB_ERR_PEER). After an error nothing is freed.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_free(mob_heap_t heap, void* pointer);

/**
 * Computes where an object of the caller's part lies in the part of another member.
 *
 * @param heap     a live heap
 * @param rank     the member, by its rank in the job
 * @param pointer  an address in the caller's part; need not be the start of a block; null for the
 *                 start of the part
 * @param remote   out: the address to give to put and get together with `rank`
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK (not a member), MOB_ERR_RANGE
 *         (`pointer` is not in the caller's part), MOB_ERR_ARGUMENT (`remote` null)
 *
 * Local, does not block. Thread safety: any, also during a collective call on the heap.
 */
MOB_API mob_status_t mob_heap_address(mob_heap_t heap, mob_rank_t rank, const void* pointer,
                                      void** remote);

/**
 * Tells the distance between the parts of neighbours in the team, for callers that compute
 * addresses themselves. An object of the caller, whose team rank is j, lies in the member with team
 * rank i at the caller's address + (i - j) × stride. The distance is fixed for the life of the
 * heap.
 *
 * @param heap          a live heap
 * @param stride_bytes  out: the distance in bytes; 0 if there is none, because the window lies at
 *                      different addresses in local peers or the members are on several hosts: then
 *                      only mob_heap_address() gives addresses
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (null)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_heap_stride(mob_heap_t heap, size_t* stride_bytes);

/**
 * Tells how much memory the caller's part of a heap has, and how much of it is in blocks. All parts
 * are alike.
 *
 * @param heap   a live heap
 * @param bytes  out: memory that the part has now; may be null
 * @param used   out: bytes in blocks, each rounded up to 16; may be null
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE
 *
 * Local, does not block. Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_bytes(mob_heap_t heap, size_t* bytes, size_t* used);

#ifdef __cplusplus
}
#endif
#endif
