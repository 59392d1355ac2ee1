/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_POINTER_H
#define MOBIUS_UPC_POINTER_H

/**
 * @file
 * Pointers to shared memory, and their arithmetic.
 *
 * Each thread has a shared area. A shared object has the same offset in all of them, so a pointer
 * is a thread, an offset in its area, and a phase: the position in the current block.
 *
 * There are three classes of layout, each with functions of its own:
 *
 * - *cyclic*: blocks of one element, `shared T`. The phase is 0 and is not read.
 * - *indefinite*: all elements in one thread, `shared [] T`. The phase is 0 and is not read.
 * - *blocked*: blocks of `block` elements, `shared [block] T`, with `block` > 1.
 *
 * None divides by the number of threads. A block size and an element size that are constants in the
 * caller cost a multiplication or a shift.
 *
 * Everything here is local, does not block, and may be called by any thread of a process. */

#ifdef __UPC__
/* This stands before the first line of a program, whose macros choose what the headers of the C
 * library declare: so none is included. */
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#ifndef NULL
#define NULL ((void*)0)
#endif
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** An exported function or object of libmobius_upc. */
#define MOB_UPC_API __attribute__((visibility("default")))
/** A function that is inlined into its caller. */
#define MOB_UPC_INLINE static inline __attribute__((always_inline, unused))

__extension__ typedef __int128 mob_upc_int128_t_;
__extension__ typedef unsigned __int128 mob_upc_uint128_t_;

/** A pointer to shared memory. It is passed in two registers. All bytes 0: null. */
typedef struct mob_upc_ptr {
  uint64_t offset; /**< bytes from the start of the thread's shared area; may wrap around */
  uint32_t thread; /**< whose area */
  uint32_t phase;  /**< position in the block, in elements; 0 unless the layout is blocked */
} mob_upc_ptr_t;

enum { MOB_UPC_MOST_THREADS = 1 << 15 /**< threads that a program can have */ };

/* Fixed before the program's main() runs, so that the compiler may keep them in registers. */
extern MOB_UPC_API const int32_t mob_upc_mythread_;
extern MOB_UPC_API const int32_t mob_upc_threads_;
extern MOB_UPC_API const int32_t mob_upc_shift_;      /* log2 of the threads; -1: no power of two */
extern MOB_UPC_API const uint64_t mob_upc_inverse_;   /* (2^64 - 1) / threads */
extern MOB_UPC_API char* const mob_upc_mine_;         /* the caller's shared area */
extern MOB_UPC_API char* const mob_upc_bases_[];      /* each area here; null: on another host */
extern MOB_UPC_API const uint64_t mob_upc_origins_[]; /* each area's address in its owner */

/** @return the number of the calling thread: MYTHREAD. */
MOB_UPC_INLINE int mob_upc_mythread(void) { return mob_upc_mythread_; }

/**
 * @return the number of threads: THREADS. A constant in a translation unit that is compiled with
 *         MOB_UPC_STATIC_THREADS.
 */
MOB_UPC_INLINE int mob_upc_threads(void) {
#ifdef MOB_UPC_STATIC_THREADS
  return MOB_UPC_STATIC_THREADS;
#else
  return mob_upc_threads_;
#endif
}

/** @return the pointer to offset `offset` of a thread's area, with phase `phase`. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_pointer(uint64_t offset, uint32_t thread, uint32_t phase) {
  mob_upc_ptr_t made;
  made.offset = offset;
  made.thread = thread;
  made.phase = phase;
  return made;
}

/** @return the null pointer. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_null(void) { return mob_upc_pointer(0, 0, 0); }

/** @return 1 if a pointer is null, else 0. */
MOB_UPC_INLINE int mob_upc_is_null(mob_upc_ptr_t p) { return (p.offset | p.thread) == 0; }

/** @return 1 if two pointers have the same thread and address, whatever their phases, else 0. */
MOB_UPC_INLINE int mob_upc_equal(mob_upc_ptr_t a, mob_upc_ptr_t b) {
  return a.offset == b.offset && a.thread == b.thread;
}

/** @return 1 if a pointer has affinity to the calling thread, else 0. */
MOB_UPC_INLINE int mob_upc_is_mine(mob_upc_ptr_t p) {
  return p.thread == (uint32_t)mob_upc_mythread_;
}

/** @return the thread that a pointer has affinity to: upc_threadof(). */
MOB_UPC_INLINE size_t mob_upc_threadof(mob_upc_ptr_t p) { return p.thread; }

/** @return the phase of a pointer: upc_phaseof(). */
MOB_UPC_INLINE size_t mob_upc_phaseof(mob_upc_ptr_t p) { return p.phase; }

/** @return the address of the object in the thread that it has affinity to: upc_addrfield(). */
MOB_UPC_INLINE size_t mob_upc_addrfield(mob_upc_ptr_t p) {
  return mob_upc_is_null(p) ? 0 : mob_upc_origins_[p.thread] + p.offset;
}

/** @return the pointer with phase 0: upc_resetphase(). */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_resetphase(mob_upc_ptr_t p) {
  return mob_upc_pointer(p.offset, p.thread, 0);
}

/**
 * Divides by the number of threads, rounding down.
 *
 * @param value     any number
 * @param quotient  out: value / threads
 * @return value - quotient × threads, from 0 to threads - 1
 */
MOB_UPC_INLINE uint32_t mob_upc_divide_by_threads(int64_t value, int64_t* quotient) {
#ifdef MOB_UPC_STATIC_THREADS
  int64_t whole = value / MOB_UPC_STATIC_THREADS;
  int64_t rest = value % MOB_UPC_STATIC_THREADS;
  if (rest < 0) {
    rest += MOB_UPC_STATIC_THREADS;
    --whole;
  }
  *quotient = whole;
  return (uint32_t)rest;
#else
  const uint64_t threads = (uint64_t)mob_upc_threads_;
  uint64_t positive;
  uint64_t whole;
  uint64_t rest;
  if (mob_upc_shift_ >= 0) {
    *quotient = value >> mob_upc_shift_;
    return (uint32_t)((uint64_t)value & (threads - 1));
  }
  positive = (uint64_t)(value < 0 ? ~value : value);
  /* One too small at most, since 2^64 - 1 is not a multiple of what is no power of two. */
  whole = (uint64_t)(((mob_upc_uint128_t_)positive * mob_upc_inverse_) >> 64);
  rest = positive - whole * threads;
  if (rest >= threads) {
    rest -= threads;
    ++whole;
  }
  *quotient = value < 0 ? ~(int64_t)whole : (int64_t)whole;
  return (uint32_t)(value < 0 ? threads - 1 - rest : rest);
#endif
}

/** @return `p + count` for elements of `bytes` bytes, indefinite layout. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_add_indefinite(mob_upc_ptr_t p, int64_t count,
                                                    uint64_t bytes) {
  return mob_upc_pointer(p.offset + (uint64_t)count * bytes, p.thread, 0);
}

/** @return `p + count` for elements of `bytes` bytes, cyclic layout. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_add_cyclic(mob_upc_ptr_t p, int64_t count, uint64_t bytes) {
  const uint64_t threads = (uint64_t)mob_upc_threads();
  const uint64_t near = (uint64_t)count + p.thread;
  int64_t rows;
  uint32_t thread;
  /* Steps of a loop. */
  if (near < threads) return mob_upc_pointer(p.offset, (uint32_t)near, 0);
  if (near < 2 * threads) {
    return mob_upc_pointer(p.offset + bytes, (uint32_t)(near - threads), 0);
  }
  thread = mob_upc_divide_by_threads((int64_t)near, &rows);
  return mob_upc_pointer(p.offset + (uint64_t)rows * bytes, thread, 0);
}

/** @return `p + count` for elements of `bytes` bytes in blocks of `block` elements, `block` > 1. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_add_blocked(mob_upc_ptr_t p, int64_t count, uint64_t bytes,
                                                 uint64_t block) {
  const uint64_t near = (uint64_t)count + p.phase;
  int64_t blocks;
  int64_t rows;
  int64_t phase;
  uint32_t thread;
  if (near < block) {
    return mob_upc_pointer(p.offset + (uint64_t)count * bytes, p.thread, (uint32_t)near);
  }
  blocks = (int64_t)near / (int64_t)block;
  phase = (int64_t)near % (int64_t)block;
  if (phase < 0) {
    phase += (int64_t)block;
    --blocks;
  }
  thread = mob_upc_divide_by_threads(blocks + (int64_t)p.thread, &rows);
  return mob_upc_pointer(
      p.offset + (uint64_t)(phase - (int64_t)p.phase + rows * (int64_t)block) * bytes, thread,
      (uint32_t)phase);
}

/** @return `a - b` in elements of `bytes` bytes, indefinite layout. */
MOB_UPC_INLINE int64_t mob_upc_subtract_indefinite(mob_upc_ptr_t a, mob_upc_ptr_t b,
                                                   uint64_t bytes) {
  return (int64_t)(a.offset - b.offset) / (int64_t)bytes;
}

/** @return `a - b` in elements of `bytes` bytes, cyclic layout. */
MOB_UPC_INLINE int64_t mob_upc_subtract_cyclic(mob_upc_ptr_t a, mob_upc_ptr_t b, uint64_t bytes) {
  return (int64_t)(a.offset - b.offset) / (int64_t)bytes * mob_upc_threads() + (int64_t)a.thread -
         (int64_t)b.thread;
}

/** @return `a - b` in elements of `bytes` bytes in blocks of `block` elements. */
MOB_UPC_INLINE int64_t mob_upc_subtract_blocked(mob_upc_ptr_t a, mob_upc_ptr_t b, uint64_t bytes,
                                                uint64_t block) {
  const int64_t phases = (int64_t)a.phase - (int64_t)b.phase;
  const int64_t elements = (int64_t)(a.offset - b.offset) / (int64_t)bytes - phases;
  return elements * mob_upc_threads() + ((int64_t)a.thread - (int64_t)b.thread) * (int64_t)block +
         phases;
}

/** @return element `index` of an indefinite array at `offset`, which lies in thread 0. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_element_indefinite(uint64_t offset, uint64_t index,
                                                        uint64_t bytes) {
  return mob_upc_pointer(offset + index * bytes, 0, 0);
}

/** @return element `index` of a cyclic array at `offset`. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_element_cyclic(uint64_t offset, uint64_t index,
                                                    uint64_t bytes) {
  int64_t rows;
  const uint32_t thread = mob_upc_divide_by_threads((int64_t)index, &rows);
  return mob_upc_pointer(offset + (uint64_t)rows * bytes, thread, 0);
}

/** @return element `index` of an array at `offset` in blocks of `block` elements, `block` > 1. */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_element_blocked(uint64_t offset, uint64_t index,
                                                     uint64_t bytes, uint64_t block) {
  const uint64_t phase = index % block;
  int64_t rows;
  const uint32_t thread = mob_upc_divide_by_threads((int64_t)(index / block), &rows);
  return mob_upc_pointer(offset + ((uint64_t)rows * block + phase) * bytes, thread,
                         (uint32_t)phase);
}

/**
 * @return a pointer `bytes` bytes behind `p` in the same thread, with phase 0: a member of a shared
 *         structure, an element of an array inside a shared element.
 */
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_member(mob_upc_ptr_t p, uint64_t bytes) {
  return mob_upc_pointer(p.offset + bytes, p.thread, 0);
}

/** @return 1 if the calling thread takes iteration `i` of a loop upc_forall(…; i), else 0. */
MOB_UPC_INLINE int mob_upc_is_my_turn(int64_t i) {
  int64_t rows;
  return mob_upc_divide_by_threads(i, &rows) == (uint32_t)mob_upc_mythread_;
}

/**
 * Tells how much of an object has affinity to a thread: upc_affinitysize().
 *
 * @param total   bytes of the object
 * @param block   bytes of a block; 0 if the layout is indefinite
 * @param thread  the thread
 * @return bytes of the object that have affinity to `thread`
 */
MOB_UPC_INLINE size_t mob_upc_affinitysize(size_t total, size_t block, size_t thread) {
  const size_t threads = (size_t)mob_upc_threads();
  size_t blocks;
  size_t whole;
  if (block == 0 || block >= total) return thread == 0 ? total : 0;
  blocks = total / block;
  whole = blocks / threads * block;
  if (thread < blocks % threads) return whole + block;
  return thread == blocks % threads ? whole + total % block : whole;
}

#ifdef __cplusplus
}
#endif
#endif
