/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_H
#define UPC_H

/**
 * @file
 * UPC 1.3, §7.2: shared memory, locks, copies, the parts of a pointer, and the end of a program.
 *
 * Declared in UPC for programs in UPC, and for others in C, with the structure mob_upc_ptr_t for
 * every pointer to shared memory. A call that cannot go on ends the job with a message that names
 * the function, the thread and the reason. Thread safety: a UPC thread is one thread of a process;
 * other threads of the process must not make calls at the same time. */

#include <mobius_upc/faces.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Ends all threads with an exit status. Flushes the caller's output. Does not return. */
MOB_UPC_API void upc_global_exit(int status) __attribute__((noreturn));

/**
 * Allocates `shared [nbytes] char[nblocks * nbytes]` on behalf of one thread: blocks go round over
 * the threads. Not collective.
 *
 * @param nblocks  number of blocks
 * @param nbytes   bytes of a block
 * @return the first byte, in thread 0, aligned to 64 bytes, contents undefined. Null if the size is
 *         0, or if the heap is full: then a line on standard error names the setting
 *         UPC_SHARED_HEAP_SIZE
 */
MOB_UPC_API MOB_UPC_SHARED_(void) upc_global_alloc(size_t nblocks, size_t nbytes);

/**
 * Allocates as upc_global_alloc(), once for all threads.
 *
 * Collective, with the same sizes; all get the same pointer. The heap grows if it must.
 */
MOB_UPC_API MOB_UPC_SHARED_(void) upc_all_alloc(size_t nblocks, size_t nbytes);

/**
 * Allocates memory with affinity to the calling thread. Not collective.
 *
 * @param nbytes  its size; 0 gives null
 * @return the memory, aligned to 64 bytes, contents undefined; null if the host has no memory
 */
MOB_UPC_API MOB_UPC_SHARED_(void) upc_alloc(size_t nbytes);

/** Allocates `nblocks * nbytes` bytes as upc_alloc(): the function of UPC 1.1. */
MOB_UPC_API MOB_UPC_SHARED_(void) upc_local_alloc(size_t nblocks, size_t nbytes);

/**
 * Frees memory of upc_global_alloc(), upc_all_alloc() or upc_alloc(). Any thread may. Not
 * collective.
 *
 * @param ptr  as it was returned; null does nothing. Other pointers, and memory that is free
 *             already, end the job with a message.
 */
MOB_UPC_API void upc_free(MOB_UPC_SHARED_(void) ptr);

/** Frees memory as upc_free(), when all threads have called it. Collective, with one pointer. */
MOB_UPC_API void upc_all_free(MOB_UPC_SHARED_(void) ptr);

/** @return the thread that `ptr` has affinity to. */
MOB_UPC_API size_t upc_threadof(MOB_UPC_SHARED_(void) ptr);
/** @return the phase of `ptr`. */
MOB_UPC_API size_t upc_phaseof(MOB_UPC_SHARED_(void) ptr);
/** @return `ptr` with phase 0. */
MOB_UPC_API MOB_UPC_SHARED_(void) upc_resetphase(MOB_UPC_SHARED_(void) ptr);
/** @return the address that the object has in the thread that `ptr` has affinity to. */
MOB_UPC_API size_t upc_addrfield(MOB_UPC_SHARED_(void) ptr);
/** @return bytes of `shared [nbytes] char[totalsize]` that have affinity to `threadid`. */
MOB_UPC_API size_t upc_affinitysize(size_t totalsize, size_t nbytes, size_t threadid);

/** Makes a lock, with affinity to the calling thread. Not collective. */
MOB_UPC_API MOB_UPC_LOCK_ upc_global_lock_alloc(void);
/** Makes one lock for all threads. Collective. */
MOB_UPC_API MOB_UPC_LOCK_ upc_all_lock_alloc(void);
/**
 * Frees a lock, held or not. Any thread may. A line on standard error tells if it is held.
 *
 * @param ptr  null does nothing; a lock that is free already ends the job with a message
 */
MOB_UPC_API void upc_lock_free(MOB_UPC_LOCK_ ptr);
/** Frees a lock as upc_lock_free(), when all threads have called it. Collective. */
MOB_UPC_API void upc_all_lock_free(MOB_UPC_LOCK_ ptr);
/**
 * Gains a lock, and waits for as long as that takes. Threads gain it in the order in which they
 * asked. A thread that holds the lock already ends the job with a message.
 */
MOB_UPC_API void upc_lock(MOB_UPC_LOCK_ ptr);
/** @return 1 if the lock was free, and is the caller's now; else 0. Does not wait. */
MOB_UPC_API int upc_lock_attempt(MOB_UPC_LOCK_ ptr);
/** Gives a lock back. All that the thread wrote before is visible to the next holder. */
MOB_UPC_API void upc_unlock(MOB_UPC_LOCK_ ptr);

/**
 * Copy `n` bytes: between shared memory, to private memory, to shared memory. All bytes of an
 * operand have affinity to one thread. The operands must not overlap. Relaxed.
 */
MOB_UPC_API void upc_memcpy(MOB_UPC_SHARED_(void) dst, MOB_UPC_SHARED_(const void) src, size_t n);
/** Copies to private memory; as upc_memcpy(). */
MOB_UPC_API void upc_memget(void* dst, MOB_UPC_SHARED_(const void) src, size_t n);
/** Copies from private memory; as upc_memcpy(). */
MOB_UPC_API void upc_memput(MOB_UPC_SHARED_(void) dst, const void* src, size_t n);
/** Sets `n` bytes to the value `c`, converted to unsigned char; as upc_memcpy(). */
MOB_UPC_API void upc_memset(MOB_UPC_SHARED_(void) dst, int c, size_t n);

#ifdef __cplusplus
}
#endif

#ifdef __UPC__
#include <bupc_extensions.h>
#endif
#endif
