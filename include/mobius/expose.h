/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_EXPOSE_H
#define MOBIUS_EXPOSE_H

/**
 * @file
 * Ordinary memory as a target: heap, stack and static variables.
 *
 * While memory is exposed, every call of rma.h, strided.h, atomic.h and transfer.h can access it at
 * its address in its owner, like an allocation; only mob_ptr() cannot. The kernel copies puts and
 * gets (cross-memory attach). The owner's progress thread does the work that the kernel cannot do
 * (atomic updates, boxes of many small runs), and all work where the kernel refuses; it does so
 * while the program computes (with MOBIUS_PROGRESS=poll: when the program calls the library). If a
 * thread of the owner waits in the library at that moment, it does puts, gets and contiguous
 * updates of up to 64 KiB itself, in an eighth of the time.
 *
 * Where only ancestors of a process may attach to it (Yama, ptrace_scope 1), the first exposure
 * allows every process of the user to attach (PR_SET_PTRACER_ANY), for good. So does the first
 * large collective call or message.
 *
 * An allocation (memory.h) is far faster: some nanoseconds instead of half a microsecond for a
 * small put, and instead of several microseconds for an atomic update. Atomicity and completion are
 * those of rma.h and atomic.h, except that mob_put8() … mob_get1() of exposed memory are atomic
 * against each other only when aligned, and are not atomic against atomic.h.
 *
 * Faults: a put that fails because exposed memory is not mapped may have been done in part. The
 * owner must not unmap or protect memory that another process may still access: if it does so while
 * another of its threads waits in the library, or goes straight from one call to the next, an
 * access may kill the owner; in other cases too it is an error of the caller. An access to guard
 * pages that are no mapping of their own (MADV_GUARD_INSTALL, which newer C libraries put at the
 * end of thread stacks) may kill the owner at any time. A program that exposes everything keeps
 * other processes away from those pages.
 *
 * **Moved pages.** With MOB_EXPOSE_REMAP the pages that hold the memory become shared memory, at
 * their own address and with their contents. The owner uses them as before. Local peers access them
 * without the kernel and without the owner, like an allocation: also with mob_ptr(), with atomic
 * instructions, and with the atomicity of an allocation. A local peer that accesses such memory
 * maps it a second time, at the address that it has in its owner if that address is unused. Then
 * the inlined calls take as long as on an allocation, else some nanoseconds more. Moving pages has
 * these consequences:
 *
 * - Whole pages move, with everything on them, but only the bytes that were asked for are targets.
 *   Pages move once: a request that shares a page with memory that was moved before fails until
 *   that memory is withdrawn. Memory in pages of its own (aligned_alloc(), mmap()) avoids these
 *   questions.
 * - While the pages move, the other threads of the process are stopped by the signal SIGURG:
 *   blocking system calls that are not restarted after a signal return EINTR. A thread that blocks
 *   SIGURG cannot be stopped, and then nothing moves. The kernel must not write to the pages
 *   meanwhile on behalf of others (io_uring, a device).
 * - The memory must be private, readable and writable: heap, static variables, mmap(). Stacks,
 *   shared mappings and executable mappings cannot move.
 * - A child of fork() gets its copy of the pages, as of all its parent's memory, before fork()
 *   returns in the parent, which takes as long as copying them. If another thread writes to the
 *   pages while the process forks, the child may find them half written; so may a child of clone()
 *   without CLONE_VM, which shares them, or sees later changes of withdrawn ones.
 * - To free(), realloc() or munmap() the memory before it is withdrawn is an error, as without the
 *   flag; mob_withdraw() would then move pages over the memory that lies there by then.
 * - mob_withdraw() and mob_finalize() make the pages private again, with their current contents. If
 *   mob_finalize() cannot stop all threads, it leaves the pages shared, with no process but this
 *   one.
 * - Withdrawn ranges of 64 KiB and more, 64 MiB of them together, keep their place in shared memory
 *   until others need the room. To expose the same pages again then takes some hundred microseconds
 *   instead of milliseconds, and a copy of the pages that the program has written meanwhile. The
 *   first write to each of these takes a page fault and memory of its own. The program may unmap,
 *   realloc(), protect and map such memory anew. Two calls fail there: madvise(MADV_DONTNEED), with
 *   EINVAL, as for all locked memory, and mremap() to a larger size, with EFAULT. The memory counts
 *   as locked; beyond the limit for that (RLIMIT_MEMLOCK) the pages are copied at once.
 * - Huge pages that the kernel gave to private memory are given up, unless it has some for shared
 *   memory.
 *
 * **The heap.** mob_expose_heap() moves all of the C library's heap, with room for it to grow, so
 * that memory from malloc() is a target like an allocation.
 *
 * Compare LAPI (any address is a target, paper 1, §2) and MPI_Win_create. */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flag of mob_expose(): moves the pages of the memory into shared memory. */
#define MOB_EXPOSE_REMAP 1u

/** Exposed memory. The library owns the object from mob_expose() to mob_withdraw(). */
typedef struct mob_exposed* mob_exposed_t;

/**
 * Makes memory of the caller a target. The memory may overlap memory that is exposed already.
 *
 * @param address  first byte: heap, stack, static, or anything else that is mapped
 * @param bytes    number of bytes, at least 1
 * @param flags    0 or MOB_EXPOSE_REMAP
 * @param exposed  out: for mob_withdraw()
 * @return MOB_OK, MOB_ERR_STATE (with MOB_EXPOSE_REMAP also: in a message handler, some of the
 *         pages were moved before, or a thread cannot be stopped), MOB_ERR_ARGUMENT (null, 0 bytes,
 *         unknown flags; pages that cannot be moved), MOB_ERR_RANGE (`address + bytes` leaves the
 *         address space), MOB_ERR_MEMORY, MOB_ERR_SYSTEM (the library's thread cannot be started;
 *         the kernel refuses to move pages). After an error everything is as before.
 *
 * Local. Does not block, except that with MOB_EXPOSE_REMAP it waits for message handlers that run.
 * It takes some 40 ns for each range that the process has exposed already: expose few large ranges,
 * not thousands of small ones. The caller still owns the memory, and keeps it mapped until it is
 * withdrawn. Other processes may access it once they know its address (from a mob_put8(), or an
 * exchange). Thread safety: any.
 */
MOB_API mob_status_t mob_expose(void* address, size_t bytes, unsigned flags,
                                mob_exposed_t* exposed);

/**
 * Makes memory from malloc() a target that local peers mostly access without the kernel. Exposes
 * everything, as mob_expose_all() does, grows the heap of the C library by `bytes` of address
 * space, and moves the heap into shared memory, as with MOB_EXPOSE_REMAP.
 *
 * Blocks of any size come from the moved heap until the room is used up. Two kinds of blocks do
 * not, and are accessed as other exposed memory: those mapped before the call (128 KiB and more),
 * and those from arenas that other threads had before; a thread that frees one of the latter may
 * get it again. Pages take memory when they are used.
 *
 * From then on the heap does not shrink: freed memory stays with the process for its next malloc().
 * Threads share one arena, so threads that allocate much wait for each other. The program must not
 * call brk(), sbrk() or malloc_trim() itself. Pages of the heap count as shared memory of the
 * process.
 *
 * @param bytes    address space to grow by, at least 1: as many bytes as the program will allocate;
 *                 some systems refuse more than the host has
 * @param exposed  out: for mob_withdraw(), which leaves the heap as large as it is
 * @return MOB_OK, MOB_ERR_STATE (also: in a message handler; a thread cannot be stopped; the heap
 *         was moved before), MOB_ERR_ARGUMENT (null, 0 bytes; malloc() is not that of the GNU C
 *         library, or belongs to a sanitizer), MOB_ERR_MEMORY, MOB_ERR_SYSTEM. After an error
 *         nothing has moved; the heap may have grown.
 *
 * Local. Waits for message handlers that run. Other processes must not access any exposed part of
 * the heap during the call. Thread safety: one thread; other threads may run.
 *
 * Compare LAPI (any address is a target, paper 1, §2).
 */
MOB_API mob_status_t mob_expose_heap(size_t bytes, mob_exposed_t* exposed);

/**
 * Exposes everything that is or will be mapped in the calling process; otherwise as mob_expose().
 *
 * @param exposed  out: for mob_withdraw()
 * @return as mob_expose() without flags
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_expose_all(mob_exposed_t* exposed);

/**
 * Ends an exposure. Bytes that are exposed a second time stay exposed.
 *
 * @param exposed  live; null does nothing
 * @return MOB_OK; with the memory still exposed: MOB_ERR_STATE (also, for moved pages: in a message
 *         handler, or a thread cannot be stopped), MOB_ERR_MEMORY (no private memory is left for
 *         moved pages), MOB_ERR_SYSTEM (the kernel no longer lets this process write to a local
 *         peer that accesses moved pages by inlined calls); MOB_ERR_HANDLE (withdrawn before, or
 *         never exposed)
 *
 * Local. Does not block, except that for moved pages it waits for message handlers that run.
 * Transfers that other processes started before may still be under way: synchronise with them
 * first. Thread safety: any.
 */
MOB_API mob_status_t mob_withdraw(mob_exposed_t exposed);

#ifdef __cplusplus
}
#endif
#endif
