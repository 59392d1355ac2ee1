/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_ACCESS_H
#define MOBIUS_UPC_ACCESS_H

/**
 * @file
 * Reads and writes of shared memory, relaxed and strict, and casts to private pointers.
 *
 * For each scalar type there are four functions, whose names end with the type:
 *
 * - `T mob_upc_get_TYPE(mob_upc_ptr_t p)`            relaxed read
 * - `T mob_upc_put_TYPE(mob_upc_ptr_t p, T value)`   relaxed write; returns `value`
 * - `T mob_upc_get_strict_TYPE(mob_upc_ptr_t p)`     strict read
 * - `T mob_upc_put_strict_TYPE(mob_upc_ptr_t p, T value)`
 *
 * TYPE is one of char, schar, uchar, short, ushort, int, uint, long, ulong, llong, ullong, float,
 * double, ldouble (long double), pointer (`void*`), shared (`mob_upc_ptr_t`), int128, uint128; in C
 * also bool, cfloat, cdouble and cldouble (the complex types).
 *
 * A thread of this host is accessed by a load of its area's address, an addition and the load or
 * store; another through the native interface. A program that reads or writes through a null
 * pointer ends with a message.
 *
 * **Relaxed** accesses of one thread to one object happen in program order; no other order is
 * promised. **Strict** accesses happen, for all threads, in one order that agrees with the order of
 * each thread, and an access of a thread before (behind) a strict one in the program happens before
 * (behind) it. A strict access completes all earlier writes of its thread.
 *
 * Block until the value has arrived, or may be changed; all but those of other hosts never wait.
 * Thread safety: one thread of the process at a time. */

#include <mobius_upc/pointer.h>

#ifdef __cplusplus
extern "C" {
#endif

MOB_UPC_API void mob_upc_get_remote_(void* to, mob_upc_ptr_t from, size_t bytes);
MOB_UPC_API void mob_upc_put_remote_(mob_upc_ptr_t to, const void* from, size_t bytes);
MOB_UPC_API void mob_upc_flush_(void);
MOB_UPC_API void* mob_upc_refuse_private_(mob_upc_ptr_t p);
/* Of libmobius: 0 while transfers to other hosts may be under way. */
extern MOB_UPC_API int32_t mob_idle_size_;

/** A strict reference without a value: upc_fence. */
MOB_UPC_INLINE void mob_upc_fence(void) {
  if (__builtin_expect(mob_idle_size_ == 0, 0)) mob_upc_flush_();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Orders what comes before a strict write. The fence behind the write does the rest. */
MOB_UPC_INLINE void mob_upc_before_strict_write_(void) {
  if (__builtin_expect(mob_idle_size_ == 0, 0)) mob_upc_flush_();
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Offsets may wrap around. */
MOB_UPC_INLINE void* mob_upc_at_(char* base, uint64_t offset) {
  return (void*)((uintptr_t)base + offset);
}

/** @return where the calling process has the object; null if it lies on another host. */
MOB_UPC_INLINE void* mob_upc_here(mob_upc_ptr_t p) {
  char* const base = mob_upc_bases_[p.thread];
  return base != NULL ? mob_upc_at_(base, p.offset) : NULL;
}

/** @return where the calling thread's own area has offset `offset`. */
MOB_UPC_INLINE void* mob_upc_local(uint64_t offset) { return mob_upc_at_(mob_upc_mine_, offset); }

/**
 * Casts to a private pointer.
 *
 * @param p  null, or an object that the calling process can address: one of a thread of this host.
 *           For another object the program ends with a message.
 * @return null, or its address
 */
MOB_UPC_INLINE void* mob_upc_to_private(mob_upc_ptr_t p) {
  if (__builtin_expect(p.thread == (uint32_t)mob_upc_mythread_ && p.offset != 0, 1)) {
    return mob_upc_at_(mob_upc_mine_, p.offset);
  }
  if (mob_upc_is_null(p)) return NULL;
  return mob_upc_bases_[p.thread] != NULL ? mob_upc_at_(mob_upc_bases_[p.thread], p.offset)
                                          : mob_upc_refuse_private_(p);
}

/**
 * Reads an object of any size.
 *
 * @param to     where to; must not overlap the object
 * @param from   the object
 * @param bytes  its size
 */
MOB_UPC_INLINE void mob_upc_get_bytes(void* to, mob_upc_ptr_t from, size_t bytes) {
  char* const base = mob_upc_bases_[from.thread];
  if (__builtin_expect(base != NULL, 1)) {
    __builtin_memcpy(to, mob_upc_at_(base, from.offset), bytes);
  } else {
    mob_upc_get_remote_(to, from, bytes);
  }
}
/** Writes an object of any size; as mob_upc_get_bytes(). */
MOB_UPC_INLINE void mob_upc_put_bytes(mob_upc_ptr_t to, const void* from, size_t bytes) {
  char* const base = mob_upc_bases_[to.thread];
  if (__builtin_expect(base != NULL, 1)) {
    __builtin_memcpy(mob_upc_at_(base, to.offset), from, bytes);
  } else {
    mob_upc_put_remote_(to, from, bytes);
  }
}
/** Reads strictly an object of any size; as mob_upc_get_bytes(). */
MOB_UPC_INLINE void mob_upc_get_strict_bytes(void* to, mob_upc_ptr_t from, size_t bytes) {
  mob_upc_fence();
  mob_upc_get_bytes(to, from, bytes);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}
/** Writes strictly an object of any size; as mob_upc_get_bytes(). */
MOB_UPC_INLINE void mob_upc_put_strict_bytes(mob_upc_ptr_t to, const void* from, size_t bytes) {
  mob_upc_before_strict_write_();
  mob_upc_put_bytes(to, from, bytes);
  mob_upc_fence();
}
/** Copies an object of any size to another, which may be the same but not overlap it otherwise. */
MOB_UPC_API void mob_upc_copy_bytes(mob_upc_ptr_t to, mob_upc_ptr_t from, size_t bytes);

/**
 * Reads a bit field.
 *
 * @param p      the structure that has it
 * @param bit    distance of its lowest bit from the start of the structure, in bits
 * @param width  its width, 1 … 64
 * @return its value, not extended by a sign
 */
MOB_UPC_API uint64_t mob_upc_get_bits(mob_upc_ptr_t p, uint64_t bit, unsigned width);
/** Reads a signed bit field; as mob_upc_get_bits(). */
MOB_UPC_API int64_t mob_upc_get_signed_bits(mob_upc_ptr_t p, uint64_t bit, unsigned width);
/**
 * Writes a bit field; as mob_upc_get_bits(). Bits of the same bytes that another thread writes at
 * the same moment may be lost, as C has it for neighbouring bit fields.
 */
MOB_UPC_API void mob_upc_put_bits(mob_upc_ptr_t p, uint64_t bit, unsigned width, uint64_t value);

/* A volatile access is one instruction, happens as often as the program says, and stays in order
 * with the others of the thread. */
#define MOB_UPC_DEFINE_ACCESS_(name, T)                                                            \
  MOB_UPC_INLINE T mob_upc_get_##name(mob_upc_ptr_t p) {                                           \
    char* const base = mob_upc_bases_[p.thread];                                                   \
    T value;                                                                                       \
    if (__builtin_expect(base != NULL, 1)) return *(const volatile T*)mob_upc_at_(base, p.offset); \
    mob_upc_get_remote_(&value, p, sizeof value);                                                  \
    return value;                                                                                  \
  }                                                                                                \
  MOB_UPC_INLINE T mob_upc_put_##name(mob_upc_ptr_t p, T value) {                                  \
    char* const base = mob_upc_bases_[p.thread];                                                   \
    if (__builtin_expect(base != NULL, 1)) {                                                       \
      *(volatile T*)mob_upc_at_(base, p.offset) = value;                                           \
    } else {                                                                                       \
      const T copy = value;                                                                        \
      mob_upc_put_remote_(p, &copy, sizeof copy);                                                  \
    }                                                                                              \
    return value;                                                                                  \
  }                                                                                                \
  MOB_UPC_DEFINE_STRICT_(name, T)
#define MOB_UPC_DEFINE_STRICT_(name, T)                                  \
  MOB_UPC_INLINE T mob_upc_get_strict_##name(mob_upc_ptr_t p) {          \
    T value;                                                             \
    mob_upc_fence();                                                     \
    value = mob_upc_get_##name(p);                                       \
    __atomic_thread_fence(__ATOMIC_ACQUIRE);                             \
    return value;                                                        \
  }                                                                      \
  MOB_UPC_INLINE T mob_upc_put_strict_##name(mob_upc_ptr_t p, T value) { \
    mob_upc_before_strict_write_();                                      \
    mob_upc_put_##name(p, value);                                        \
    mob_upc_fence();                                                     \
    return value;                                                        \
  }

MOB_UPC_DEFINE_ACCESS_(char, char)
MOB_UPC_DEFINE_ACCESS_(schar, signed char)
MOB_UPC_DEFINE_ACCESS_(uchar, unsigned char)
MOB_UPC_DEFINE_ACCESS_(short, short)
MOB_UPC_DEFINE_ACCESS_(ushort, unsigned short)
MOB_UPC_DEFINE_ACCESS_(int, int)
MOB_UPC_DEFINE_ACCESS_(uint, unsigned int)
MOB_UPC_DEFINE_ACCESS_(long, long)
MOB_UPC_DEFINE_ACCESS_(ulong, unsigned long)
MOB_UPC_DEFINE_ACCESS_(llong, long long)
MOB_UPC_DEFINE_ACCESS_(ullong, unsigned long long)
MOB_UPC_DEFINE_ACCESS_(float, float)
MOB_UPC_DEFINE_ACCESS_(double, double)
MOB_UPC_DEFINE_ACCESS_(ldouble, long double)
MOB_UPC_DEFINE_ACCESS_(int128, mob_upc_int128_t_)
MOB_UPC_DEFINE_ACCESS_(uint128, mob_upc_uint128_t_)
typedef void* mob_upc_private_t_;
MOB_UPC_DEFINE_ACCESS_(pointer, mob_upc_private_t_)
#ifndef __cplusplus
MOB_UPC_DEFINE_ACCESS_(bool, _Bool)
MOB_UPC_DEFINE_ACCESS_(cfloat, float _Complex)
MOB_UPC_DEFINE_ACCESS_(cdouble, double _Complex)
MOB_UPC_DEFINE_ACCESS_(cldouble, long double _Complex)
#endif

MOB_UPC_INLINE mob_upc_ptr_t mob_upc_get_shared(mob_upc_ptr_t p) {
  mob_upc_ptr_t value;
  mob_upc_get_bytes(&value, p, sizeof value);
  return value;
}
MOB_UPC_INLINE mob_upc_ptr_t mob_upc_put_shared(mob_upc_ptr_t p, mob_upc_ptr_t value) {
  mob_upc_put_bytes(p, &value, sizeof value);
  return value;
}
MOB_UPC_DEFINE_STRICT_(shared, mob_upc_ptr_t)

#undef MOB_UPC_DEFINE_ACCESS_
#undef MOB_UPC_DEFINE_STRICT_

#ifdef __cplusplus
}
#endif
#endif
