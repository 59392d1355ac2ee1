/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_EXPOSE_H
#define MOBIUS_EXPOSE_H

/**
 * @file
 * Ordinary memory as a target: heap, stack and static variables.
 *
 * While memory is exposed, every call of rma.h, strided.h, atomic.h and transfer.h reaches it at
 * its address in its owner, like an allocation; only mob_ptr() does not. The owner takes no part:
 * puts and gets are copied by the kernel (cross-memory attach), and what the kernel cannot do
 * (atomic updates, boxes of many small runs; everything, where it refuses) is done by the owner's
 * progress thread, also while the program computes (with MOBIUS_PROGRESS=poll: when the program
 * calls the library). A thread of the owner that waits in the library at that moment does puts,
 * gets and contiguous updates of up to 64 KiB itself, in an eighth of the time.
 *
 * Where only ancestors of a process may attach to it (Yama, ptrace_scope 1), the first exposure
 * allows every process of the user to (PR_SET_PTRACER_ANY), and it stays so. The first large
 * collective call or message does, too.
 *
 * An allocation (memory.h) is far faster: some nanoseconds instead of half a microsecond for a
 * small put, and several for an atomic update. Atomicity and completion are those of rma.h and
 * atomic.h, but mob_put8() … mob_get1() of exposed memory are atomic against each other only when
 * aligned, and not against atomic.h. A put that fails because exposed memory is not mapped may have
 * been done in part; to use memory that its owner unmaps, or takes access to (mprotect()), while
 * another one of its threads waits in the library, or goes from one call straight to the next, may
 * be the end of the owner; and so may, at any time, the use of guard pages that are no mapping of
 * their own (MADV_GUARD_INSTALL, which newer C libraries put at the end of the stacks of threads):
 * who exposes everything keeps others away from those.
 * What it unmapped or protected before it waits is an error of the caller.
 *
 * **Moved pages.** With MOB_EXPOSE_REMAP the pages that hold the memory become shared memory, at
 * their own address and with their contents. Its owner uses it as before; host-mates reach it
 * without the kernel and without the owner, like an allocation: also with mob_ptr(), with atomic
 * instructions, and with the atomicity of an allocation. A host-mate that uses it maps it a second
 * time, at the address that it has in its owner, if nothing is there: then it takes the inlined
 * calls as long as an allocation, else some nanoseconds more. What follows from moving pages:
 *
 * - Whole pages move, with what else is on them; only the bytes that were asked for are targets.
 *   Pages move once: what shares one with memory that was moved before is refused until that is
 *   withdrawn. Memory of its own pages (aligned_alloc(), mmap()) raises none of these questions.
 * - While the pages move, the other threads of the process are stopped, with the signal SIGURG:
 *   blocking system calls of theirs that are not restarted after signals return EINTR. A thread
 *   that blocks SIGURG cannot be stopped, and then nothing moves. The kernel must not be writing to
 *   the pages meanwhile for anybody else (io_uring, a device).
 * - It is for private memory that can be read and written: heap, static variables, mmap(). Not for
 *   stacks, nor for what is shared already or mapped for execution.
 * - A child of fork() gets its copy, as of all its parent's memory, before fork() returns in the
 *   parent: that takes as long as copying them. One that another thread forks while the program
 *   writes to them may find them half written; so may one of clone() without CLONE_VM, which shares
 *   them.
 * - free(), realloc() and munmap() of the memory before it is withdrawn are errors, as without the
 *   flag; mob_withdraw() would then move pages over what lies there.
 * - mob_withdraw() and mob_finalize() make the pages private again, with what they hold then.
 *   mob_finalize() leaves them shared, with nobody but this process, if it cannot stop all threads.
 * - Huge pages that the kernel gave to private memory are given up, unless it has some for shared
 *   memory.
 *
 * **The heap.** mob_expose_heap() moves all of the C library's heap, with room for it to grow, so
 * that what malloc() gives is a target like an allocation.
 *
 * Compare LAPI (any address is a target, paper 1, §2) and MPI_Win_create.
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flag of mob_expose(): moves the pages of the memory into shared memory. */
#define MOB_EXPOSE_REMAP 1u

/** Some exposed memory. Owned by the library from mob_expose() to mob_withdraw(). */
typedef struct mob_exposed* mob_exposed_t;

/**
 * Makes memory of the caller a target. May overlap what is exposed already.
 *
 * @param address  first byte: heap, stack, static, or anything else that is mapped
 * @param bytes    how many, at least 1
 * @param flags    0 or MOB_EXPOSE_REMAP
 * @param exposed  out: for mob_withdraw()
 * @return MOB_OK, MOB_ERR_STATE (with MOB_EXPOSE_REMAP also: in a message handler, some of the
 *         pages were moved before, or a thread cannot be stopped), MOB_ERR_ARGUMENT (null, 0 bytes,
 *         unknown flags; pages that cannot be moved), MOB_ERR_RANGE (`address + bytes` leaves the
 *         address space), MOB_ERR_MEMORY, MOB_ERR_SYSTEM (the library's thread cannot be started;
 *         the kernel does not move pages).
 *         After an error everything is as before.
 *
 * Local. Does not block; with MOB_EXPOSE_REMAP it waits for message handlers that run. Takes time
 * in proportion to what the process has exposed already, some 40 ns for each: expose few large
 * stretches, not thousands of small ones. The memory stays the caller's, who keeps it mapped until
 * it is withdrawn. Others may use it once they know its address (mob_put8() it to them, or an
 * exchange). Thread safety: any.
 */
MOB_API mob_status_t mob_expose(void* address, size_t bytes, unsigned flags,
                                mob_exposed_t* exposed);

/**
 * Makes what malloc() gives a target, most of which host-mates reach without the kernel: exposes
 * everything, as mob_expose_all() does, grows the heap of the C library by `bytes` of address space
 * and moves it into shared memory, as with MOB_EXPOSE_REMAP. Blocks of any size come from there
 * until the room is used up. Not from there, and reached as other exposed memory, are what was
 * mapped before (128 KiB and more are), and what comes from arenas that other threads had before: a
 * block of one of these may be given out again by who frees it. Memory is taken as pages are used.
 *
 * From then on the heap does not shrink: what is freed stays with the process, for its next
 * malloc(); and threads share the one arena, so that many that allocate much wait for each other.
 * The program must not call brk(), sbrk() or malloc_trim() itself. Pages of the heap count as
 * shared memory of the process.
 *
 * @param bytes    address space to grow by, at least 1: as many bytes as the program will allocate;
 *                 some systems refuse more than the host has
 * @param exposed  out: for mob_withdraw(), which leaves the heap as large as it is
 * @return MOB_OK, MOB_ERR_STATE (also: in a message handler; a thread cannot be stopped; the heap
 *         was moved before), MOB_ERR_ARGUMENT (null, 0 bytes; malloc() is not that of the GNU C
 *         library, or a sanitizer's), MOB_ERR_MEMORY, MOB_ERR_SYSTEM.
 *         After an error nothing has moved; the heap may have grown.
 *
 * Local. Waits for message handlers that run. What others know of the heap already, because it is
 * exposed, they must not be using. Thread safety: one thread; others may run.
 *
 * Compare LAPI (any address is a target, paper 1, §2).
 */
MOB_API mob_status_t mob_expose_heap(size_t bytes, mob_exposed_t* exposed);

/** As mob_expose(), for everything that is or will be mapped in the calling process. */
MOB_API mob_status_t mob_expose_all(mob_exposed_t* exposed);

/**
 * Ends what mob_expose() began. Bytes that are exposed a second time stay so.
 *
 * @param exposed  live; null does nothing
 * @return MOB_OK, MOB_ERR_STATE (also, of moved pages: in a message handler, or a thread cannot
 *         be stopped; they are exposed still), MOB_ERR_HANDLE (withdrawn before, or never
 *         exposed), MOB_ERR_MEMORY (no private memory is left for moved pages; they are exposed
 *         still), MOB_ERR_SYSTEM (the kernel does not let this process write to a host-mate that
 *         uses moved pages by inlined calls, as it did before; they are exposed still)
 *
 * Local. Does not block, but for moved pages waits for message handlers that run. Transfers that
 * others started before may still be under way: synchronise with them first. Thread safety: any.
 */
MOB_API mob_status_t mob_withdraw(mob_exposed_t exposed);

#ifdef __cplusplus
}
#endif
#endif
