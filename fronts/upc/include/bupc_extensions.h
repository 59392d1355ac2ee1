/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BUPC_EXTENSIONS_H
#define BUPC_EXTENSIONS_H

/**
 * @file
 * What programs for Berkeley UPC use beyond the language. In UPC, <upc.h> includes it.
 *
 * Calls whose name ends with `_async` return a handle for bupc_waitsync(); those with `_asynci`
 * are waited for by bupc_waitsynci(). Those that have another name in upc_nb.h go on meanwhile as
 * it says. In this library all others do their work before they return: those of lists and strides,
 * and bupc_memput_signal_async(). Errors end the job with a message. */

#include <bupc_atomics.h>
#include <mobius_upc/faces.h>
#include <upc_nb.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Lets the library make progress. */
MOB_UPC_API void bupc_poll(void);
/** Lets the library make progress. */
MOB_UPC_API void upc_poll(void);
/** @return getenv(name): all threads have the environment of the launcher. */
MOB_UPC_API char* bupc_getenv(const char* name);

#define BUPC_DUMP_MIN_LENGTH 100
/**
 * Describes a pointer in words.
 *
 * @param ptr     the pointer
 * @param buffer  out: the text; at least BUPC_DUMP_MIN_LENGTH bytes
 * @param length  size of `buffer`
 * @return 0; -1, with errno EINVAL, if the buffer is too small
 */
MOB_UPC_API int bupc_dump_shared(MOB_UPC_SHARED_(const void) ptr, char* buffer, int length);

/** @return as upc_cast(). */
MOB_UPC_API void* bupc_cast(MOB_UPC_SHARED_(const void) ptr);
/** @return 1 if upc_cast() of the pointer gives an address or the pointer is null, else 0. */
MOB_UPC_API int bupc_castable(MOB_UPC_SHARED_(const void) ptr);
/** @return 1 if all memory of a thread can be cast, else 0. */
MOB_UPC_API int bupc_thread_castable(unsigned int thread);
/** @return the pointer to shared memory that upc_cast() gave `ptr` for; null if there is none. */
MOB_UPC_API MOB_UPC_SHARED_(void) bupc_inverse_cast(void* ptr);
/** @return a pointer to `thread`, at the place that `ptr` has in the caller's shared memory. */
MOB_UPC_API MOB_UPC_SHARED_(void) bupc_local_to_shared(void* ptr, int thread, int phase);
/** @return `p + increment` for elements of `bytes` bytes in blocks of `block` (0: indefinite). */
MOB_UPC_API MOB_UPC_SHARED_(void)
    bupc_ptradd(MOB_UPC_SHARED_(void) p, size_t block, size_t bytes, ptrdiff_t increment);

/** Ticks of upc_tick.h. */
typedef uint64_t bupc_tick_t;
#define BUPC_TICK_MAX ((bupc_tick_t) - 1)
#define BUPC_TICK_MIN ((bupc_tick_t)0)
/** @return the time now. */
MOB_UPC_API bupc_tick_t bupc_ticks_now(void);
/** @return ticks in microseconds. */
MOB_UPC_API uint64_t bupc_ticks_to_us(bupc_tick_t ticks);
/** @return ticks in nanoseconds. */
MOB_UPC_API uint64_t bupc_ticks_to_ns(bupc_tick_t ticks);
/** @return the shortest time between two different ticks, in microseconds. */
MOB_UPC_API double bupc_tick_granularityus(void);
/** @return the time that bupc_ticks_now() takes, in microseconds. */
MOB_UPC_API double bupc_tick_overheadus(void);

#define BUPC_THREADS_SAME 0
#define BUPC_THREADS_VERYNEAR 100
#define BUPC_THREADS_NEAR 200
#define BUPC_THREADS_FAR 300
#define BUPC_THREADS_VERYFAR 400
/** @return how far two threads are apart: the same, of one host (VERYNEAR), of two (VERYFAR). */
MOB_UPC_API unsigned int bupc_thread_distance(int thread_x, int thread_y);

/** @return as upc_all_free() and upc_all_lock_free(). */
MOB_UPC_API void bupc_all_free(MOB_UPC_SHARED_(void) ptr);
/** Frees a lock, as upc_all_lock_free(). */
MOB_UPC_API void bupc_all_lock_free(MOB_UPC_LOCK_ ptr);

#ifdef __UPC__
/** A semaphore: an object that only pointers name. */
typedef shared struct bupc_sem_struct bupc_sem_t;
#define MOB_UPC_SEM_ bupc_sem_t*
#else
#define MOB_UPC_SEM_ mob_upc_ptr_t
#endif
#define BUPC_SEM_BOOLEAN 1
#define BUPC_SEM_INTEGER 2
#define BUPC_SEM_SPRODUCER 4
#define BUPC_SEM_MPRODUCER 8
#define BUPC_SEM_SCONSUMER 16
#define BUPC_SEM_MCONSUMER 32
#define BUPC_SEM_MASK 63
#define BUPC_SEM_MAXVALUE 65535
/**
 * Makes a semaphore with affinity to the caller, value 0. Not collective.
 *
 * @param flags  BUPC_SEM_*; 0 for a number that many post and many wait for
 */
MOB_UPC_API MOB_UPC_SEM_ bupc_sem_alloc(int flags);
/** Frees a semaphore; null does nothing. */
MOB_UPC_API void bupc_sem_free(MOB_UPC_SEM_ s);
/** Adds 1; a boolean one becomes 1. What the caller did before is visible to the thread it wakes.
 */
MOB_UPC_API void bupc_sem_post(MOB_UPC_SEM_ s);
/** Adds `n`; not for boolean ones. */
MOB_UPC_API void bupc_sem_postN(MOB_UPC_SEM_ s, size_t n);
/** Waits until the value is at least 1, and subtracts 1. */
MOB_UPC_API void bupc_sem_wait(MOB_UPC_SEM_ s);
/** Waits until the value is at least `n`, and subtracts `n`. */
MOB_UPC_API void bupc_sem_waitN(MOB_UPC_SEM_ s, size_t n);
/** @return 1 if bupc_sem_wait() could be done without waiting, and was; else 0. */
MOB_UPC_API int bupc_sem_try(MOB_UPC_SEM_ s);
/** @return 1 if bupc_sem_waitN() could be done without waiting, and was; else 0. */
MOB_UPC_API int bupc_sem_tryN(MOB_UPC_SEM_ s, size_t n);
/** Puts as upc_memput(), then posts `n`, when the bytes are there; both with one affinity. */
MOB_UPC_API void bupc_memput_signal(MOB_UPC_SHARED_(void) dst, const void* src, size_t bytes,
                                    MOB_UPC_SEM_ s, size_t n);
/** Puts as bupc_memput_signal(), and returns when the bytes are read from `src`. */
MOB_UPC_API void bupc_memput_signal_async(MOB_UPC_SHARED_(void) dst, const void* src, size_t bytes,
                                          MOB_UPC_SEM_ s, size_t n);

/* Copies that go on meanwhile: those of upc_nb.h under their former names. */
#define bupc_handle_t upc_handle_t
#define BUPC_COMPLETE_HANDLE UPC_COMPLETE_HANDLE
#define bupc_memcpy_async upc_memcpy_nb
#define bupc_memget_async upc_memget_nb
#define bupc_memput_async upc_memput_nb
#define bupc_memset_async upc_memset_nb
#define bupc_waitsync upc_sync
#define bupc_trysync upc_sync_attempt
#define bupc_memcpy_asynci upc_memcpy_nbi
#define bupc_memget_asynci upc_memget_nbi
#define bupc_memput_asynci upc_memput_nbi
#define bupc_memset_asynci upc_memset_nbi
#define bupc_waitsynci upc_synci
#define bupc_trysynci upc_synci_attempt
/** Waits for `count` copies; each handle becomes BUPC_COMPLETE_HANDLE. */
MOB_UPC_API void bupc_waitsync_all(upc_handle_t* handles, size_t count);
/** @return 1 if all `count` copies are complete, else 0. Complete handles are used up. */
MOB_UPC_API int bupc_trysync_all(upc_handle_t* handles, size_t count);
/** Waits until one of the copies is complete; all that are become BUPC_COMPLETE_HANDLE. */
MOB_UPC_API void bupc_waitsync_some(upc_handle_t* handles, size_t count);
/** @return 1 if one of the copies is complete, or all were; those become BUPC_COMPLETE_HANDLE. */
MOB_UPC_API int bupc_trysync_some(upc_handle_t* handles, size_t count);
/** Does nothing: bupc_end_accessregion() waits for all copies without a handle. */
MOB_UPC_API void bupc_begin_accessregion(void);
/** Waits for all copies without a handle, as upc_synci(). @return BUPC_COMPLETE_HANDLE */
MOB_UPC_API upc_handle_t bupc_end_accessregion(void);

/** A piece of private memory. */
typedef struct bupc_pmemvec {
  void* addr;
  size_t len;
} bupc_pmemvec_t;
/** A piece of shared memory, with affinity to one thread. */
typedef struct bupc_smemvec {
  MOB_UPC_SHARED_(void) addr;
  size_t len;
} bupc_smemvec_t;

/* Copies of several pieces, in order: the bytes of all source pieces fill the destination pieces.
 * vlist: pieces of different lengths. ilist: of one length. fstrided: `count` pieces of `len`
 * bytes, `stride` bytes apart. strided: a box of `levels` dimensions: count[0] contiguous bytes,
 * then count[i] repetitions at strides[i - 1]. */
#define MOB_UPC_VECTORS_(result, suffix)                                                         \
  MOB_UPC_API result bupc_memcpy_vlist##suffix(size_t dstcount, bupc_smemvec_t const dstlist[],  \
                                               size_t srccount, bupc_smemvec_t const srclist[]); \
  MOB_UPC_API result bupc_memput_vlist##suffix(size_t dstcount, bupc_smemvec_t const dstlist[],  \
                                               size_t srccount, bupc_pmemvec_t const srclist[]); \
  MOB_UPC_API result bupc_memget_vlist##suffix(size_t dstcount, bupc_pmemvec_t const dstlist[],  \
                                               size_t srccount, bupc_smemvec_t const srclist[]); \
  MOB_UPC_API result bupc_memcpy_ilist##suffix(                                                  \
      size_t dstcount, MOB_UPC_SHARED_(void) const dstlist[], size_t dstlen, size_t srccount,    \
      MOB_UPC_SHARED_(const void) const srclist[], size_t srclen);                               \
  MOB_UPC_API result bupc_memput_ilist##suffix(                                                  \
      size_t dstcount, MOB_UPC_SHARED_(void) const dstlist[], size_t dstlen, size_t srccount,    \
      const void* const srclist[], size_t srclen);                                               \
  MOB_UPC_API result bupc_memget_ilist##suffix(                                                  \
      size_t dstcount, void* const dstlist[], size_t dstlen, size_t srccount,                    \
      MOB_UPC_SHARED_(const void) const srclist[], size_t srclen);                               \
  MOB_UPC_API result bupc_memcpy_fstrided##suffix(                                               \
      MOB_UPC_SHARED_(void) dst, size_t dstlen, size_t dststride, size_t dstcount,               \
      MOB_UPC_SHARED_(void) src, size_t srclen, size_t srcstride, size_t srccount);              \
  MOB_UPC_API result bupc_memput_fstrided##suffix(                                               \
      MOB_UPC_SHARED_(void) dst, size_t dstlen, size_t dststride, size_t dstcount, void* src,    \
      size_t srclen, size_t srcstride, size_t srccount);                                         \
  MOB_UPC_API result bupc_memget_fstrided##suffix(                                               \
      void* dst, size_t dstlen, size_t dststride, size_t dstcount, MOB_UPC_SHARED_(void) src,    \
      size_t srclen, size_t srcstride, size_t srccount);                                         \
  MOB_UPC_API result bupc_memcpy_strided##suffix(                                                \
      MOB_UPC_SHARED_(void) dst, const size_t dststrides[], MOB_UPC_SHARED_(const void) src,     \
      const size_t srcstrides[], const size_t count[], size_t levels);                           \
  MOB_UPC_API result bupc_memput_strided##suffix(                                                \
      MOB_UPC_SHARED_(void) dst, const size_t dststrides[], const void* src,                     \
      const size_t srcstrides[], const size_t count[], size_t levels);                           \
  MOB_UPC_API result bupc_memget_strided##suffix(                                                \
      void* dst, const size_t dststrides[], MOB_UPC_SHARED_(const void) src,                     \
      const size_t srcstrides[], const size_t count[], size_t levels);
MOB_UPC_VECTORS_(void, )
MOB_UPC_VECTORS_(upc_handle_t, _async)
#undef MOB_UPC_VECTORS_

/* There is no trace of Berkeley's kind: `mobius run --trace` shows what a program does. */
#define bupc_trace_printf(parenthesized_arguments) ((void)0)
/** Does nothing. */
MOB_UPC_API void bupc_trace_setmask(const char* mask);
/** Does nothing. */
MOB_UPC_API void bupc_stats_setmask(const char* mask);
/** @return "": nothing is traced. */
MOB_UPC_API const char* bupc_trace_getmask(void);
/** @return "": nothing is counted. */
MOB_UPC_API const char* bupc_stats_getmask(void);
/** @return 0: nothing is traced. */
MOB_UPC_API int bupc_trace_gettracelocal(void);
/** Does nothing. */
MOB_UPC_API void bupc_trace_settracelocal(int value);

#ifdef __cplusplus
}
#endif
#endif
