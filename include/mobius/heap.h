/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_HEAP_H
#define MOBIUS_HEAP_H

/**
 * @file
 * Symmetric heaps: the members of a team allocate together, with the same calls in the same order,
 * and each block lies at the same place of every member's part. A member computes where a block is
 * in another from where it is in itself. A heap grows up to a size that is given when it is made.
 *
 * Every collective call here is a barrier of the team and checks, at no further cost, that all
 * members ask for the same: calls that differ fail everywhere and change nothing. Which block is
 * where is kept outside the heap: a wild write into a heap breaks no books.
 *
 * Compare OpenSHMEM 1.5 §9.3 (shmem_malloc and its kin).
 */

#include <mobius/job.h>
#include <mobius/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A symmetric heap. Owned by the library from mob_heap_create() to mob_heap_destroy(). */
typedef struct mob_heap* mob_heap_t;

/**
 * Makes a heap.
 *
 * Collective over the team, blocks until every member called it.
 *
 * @param team           the team; it cannot be freed before its heaps
 * @param initial_bytes  memory of each member's part at first, rounded up to 2 MiB; may be 0
 * @param maximum_bytes  what a part may grow to, rounded up to 2 MiB; at least 1 and at least
 *                       `initial_bytes`. It costs address space of the window in every process,
 *                       and shared memory of one byte in 128 KiB, not the memory itself
 * @param heap           out: the heap
 * @return MOB_OK;
 *         MOB_ERR_STATE     outside init … finalize;
 *         MOB_ERR_HANDLE    `team` is not live (returns at once);
 *         MOB_ERR_ARGUMENT  `heap` null, sizes that differ between members or contradict
 *                           each other;
 *         MOB_ERR_RANGE     a size larger than the window;
 *         MOB_ERR_MEMORY    the host lacks memory, or the window room for the maximum of all
 *                           parts;
 *         MOB_ERR_PEER      another member got one of these errors.
 *         If one member fails, all fail, and nothing stays allocated.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_create(mob_team_t team, size_t initial_bytes, size_t maximum_bytes,
                                     mob_heap_t* heap);

/**
 * Frees a heap with every block in it. Collective over its team: completes what the calling thread
 * has started, as mob_flush_all(), and blocks until every member called it.
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
 * Collective over the heap's team, blocks until every member called it. The heap grows if it must.
 *
 * @param heap     a live heap
 * @param bytes    size, the same everywhere; 0 gives a null pointer
 * @param pointer  out: the own block, aligned to 16 bytes, contents undefined; owned by the team
 *                 until mob_heap_free()
 * @return MOB_OK;
 *         MOB_ERR_STATE;
 *         MOB_ERR_HANDLE    `heap` is not live (returns at once);
 *         MOB_ERR_ARGUMENT  `pointer` null, or the members' calls differ;
 *         MOB_ERR_MEMORY    no room in the heap, which has grown to its maximum or cannot for lack
 *                           of memory;
 *         MOB_ERR_PEER      another member got one of these errors, or died.
 *         After an error the heap is as before in every member.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_malloc(mob_heap_t heap, size_t bytes, void** pointer);

/**
 * As mob_heap_malloc() for `count` × `bytes` bytes, which are zero in every member when it returns.
 *
 * @return as mob_heap_malloc(); MOB_ERR_MEMORY also where the product overflows
 */
MOB_API mob_status_t mob_heap_calloc(mob_heap_t heap, size_t count, size_t bytes, void** pointer);

/**
 * As mob_heap_malloc(), with an alignment.
 *
 * @param alignment  a power of two up to 2 MiB, or 0 for 16 bytes; the same everywhere
 * @return as mob_heap_malloc(); MOB_ERR_ARGUMENT also for a wrong alignment
 */
MOB_API mob_status_t mob_heap_align(mob_heap_t heap, size_t alignment, size_t bytes,
                                    void** pointer);

/**
 * Makes a block longer or shorter in every member, and moves it, in all of them alike, where it
 * must.
 *
 * Collective over the heap's team: completes what the calling thread has started, as
 * mob_flush_all(), and blocks until every member called it. Operations on the block are complete
 * before.
 *
 * @param heap     a live heap
 * @param pointer  the own block; null allocates
 * @param bytes    new size, the same everywhere; 0 frees the block and gives a null pointer
 * @param result   out: the own block, with the contents of the old one as far as both reach. May be
 *                 the address of the variable that holds `pointer`
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
 * mob_flush_all(), and waits until every member called it, so that no operation started before can
 * hit a later block.
 *
 * @param heap     a live heap
 * @param pointer  the own block; null does nothing if every member passes null
 * @return MOB_OK; MOB_ERR_STATE; MOB_ERR_HANDLE (`heap` not live: returns at once; or `pointer` no
 *         live block: the others get MOB_ERR_PEER); MOB_ERR_ARGUMENT (the members' blocks differ);
 *         MOB_ERR_PEER; or the first error of an operation without a handle (the others get
 *         MOB_ERR_PEER). After an error nothing is freed.
 *
 * Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_free(mob_heap_t heap, void* pointer);

/**
 * Where an object of the caller's part lies in the part of another member.
 *
 * @param heap     a live heap
 * @param rank     the member, by its rank in the job
 * @param pointer  an address in the caller's part; need not be the start of a block
 * @param remote   out: the address to give to put and get together with `rank`
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_RANK (not a member), MOB_ERR_RANGE
 *         (`pointer` is not in the caller's part), MOB_ERR_ARGUMENT (`remote` null)
 *
 * Local, does not block. Thread safety: any, also during a collective call on the heap.
 */
MOB_API mob_status_t mob_heap_address(mob_heap_t heap, mob_rank_t rank, const void* pointer,
                                      void** remote);

/**
 * The distance between the parts of neighbours in the team, for those who compute addresses
 * themselves: in the member with team rank i, an object of the caller, whose team rank is j, lies
 * at its own address + (i - j) × stride. For as long as the heap lives.
 *
 * @param heap          a live heap
 * @param stride_bytes  out: the distance; 0 where windows lie at different addresses in host-mates,
 *                      or members on several hosts, so that only mob_heap_address() knows
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (null)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_heap_stride(mob_heap_t heap, size_t* stride_bytes);

/**
 * How much memory a heap has and how much of it is in blocks, in the caller's part (all are alike).
 *
 * @param heap   a live heap
 * @param bytes  out: memory that the part has now; may be null
 * @param used   out: bytes in blocks, which are rounded up to 16; may be null
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE
 *
 * Local, does not block. Thread safety: single per team.
 */
MOB_API mob_status_t mob_heap_bytes(mob_heap_t heap, size_t* bytes, size_t* used);

#ifdef __cplusplus
}
#endif
#endif
