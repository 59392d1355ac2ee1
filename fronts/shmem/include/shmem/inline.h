/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SHMEM_INLINE_H
#define MOBIUS_SHMEM_INLINE_H

/* The inlined paths of shmem.h. Not an interface: programs call nothing here.
 *
 * A symmetric object of the heap lies in PE `pe` at the caller's address plus offsets[pe], a static
 * variable of the program at its address plus statics_offsets[pe]. The inlined call of Möbius does
 * the rest for a PE of the same host, and for one of another host where that call keeps the
 * promises of OpenSHMEM. Everything else (variables of libraries, errors, contexts and atomic
 * operations between hosts, the debug mode, where both sizes are 0) takes the call with "slow" in
 * its name, which begins anew. */

typedef struct shmem_state_ {
  uintptr_t heap;           /* the caller's part of the symmetric heap */
  size_t heap_bytes;        /* room for it; 0 outside init … finalize and in the debug mode */
  const ptrdiff_t* offsets; /* for each PE: its part less the caller's */
  /* The same of the program's static variables; statics_bytes is also 0 if some PE has others. */
  uintptr_t statics;
  size_t statics_bytes;
  const ptrdiff_t* statics_offsets;
  int n_pes; /* 0 outside init … finalize */
  int me;
  int is_one_host; /* 1: all PEs share memory */
} shmem_state_t_;
extern MOB_API shmem_state_t_ shmem_state_;

typedef enum shmem_amo_ {
  SHMEM_AMO_ADD_,
  SHMEM_AMO_AND_,
  SHMEM_AMO_OR_,
  SHMEM_AMO_XOR_,
  SHMEM_AMO_SWAP_,
  SHMEM_AMO_COMPARE_SWAP_
} shmem_amo_t_;

MOB_API void shmem_put_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                             const char* call);
MOB_API void shmem_put_nbi_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                 int pe, const char* call);
MOB_API void shmem_get_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes, int pe,
                             const char* call);
MOB_API void shmem_get_nbi_slow_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                 int pe, const char* call);
/* `bytes` is the size of an element. */
MOB_API void shmem_iput_slow_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst,
                              ptrdiff_t sst, size_t nelems, size_t bytes, int pe, const char* call);
MOB_API void shmem_iget_slow_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst,
                              ptrdiff_t sst, size_t nelems, size_t bytes, int pe, const char* call);
/* Words of 4 or 8 bytes; the former value. */
MOB_API uint64_t shmem_amo_slow_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                                 uint64_t expected, unsigned bytes, int pe, const char* call);
/* The same, where the former value is not wanted: need not wait for another host. */
MOB_API void shmem_update_slow_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                                unsigned bytes, int pe, const char* call);
/* Ends the job: the flush of shmem_quiet() has failed. */
MOB_API void shmem_quiet_failed_(const char* call);
MOB_API void shmem_fence_slow_(shmem_ctx_t ctx, const char* call);
/* `type` is a word's; the value has it, extended to 64 bits. */
MOB_API void shmem_wait_slow_(const void* ivar, mob_type_t type, int cmp, uint64_t value,
                              const char* call);
MOB_API int shmem_test_slow_(const void* ivar, mob_type_t type, int cmp, uint64_t value,
                             const char* call);

/* Fetches a word atomically; as shmem_amo_slow_(). */
MOB_API uint64_t shmem_fetch_slow_(shmem_ctx_t ctx, const void* source, unsigned bytes, int pe,
                                   const char* call);

/* The address of a symmetric object in `pe`; null if the slow call has to find out. */
MOB_INLINE_PART_ char* shmem_place_(const void* here, int pe) {
  const ptrdiff_t* offsets = shmem_state_.offsets;
  if (MOB_UNLIKELY((uintptr_t)here - shmem_state_.heap >= shmem_state_.heap_bytes)) {
    if ((uintptr_t)here - shmem_state_.statics >= shmem_state_.statics_bytes) return 0;
    offsets = shmem_state_.statics_offsets;
  }
  if (MOB_UNLIKELY((unsigned)pe >= (unsigned)shmem_state_.n_pes)) return 0;
  return (char*)(uintptr_t)here + offsets[pe];
}

/* Converts a PE number of a context to one of the world; -1 if the slow call has to find out. */
MOB_INLINE_PART_ int shmem_world_pe_(shmem_ctx_t ctx, int pe) {
  if (ctx == SHMEM_CTX_DEFAULT) return pe;
  if (MOB_UNLIKELY(ctx == 0) || MOB_UNLIKELY((unsigned)pe >= (unsigned)ctx->n_pes)) return -1;
  return ctx->start + pe * ctx->stride;
}

/* 1 if it was done. `bytes` is a constant: one of 1, 2, 4 and 8, or else nothing is done. */
MOB_INLINE_PART_ int shmem_store_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                  int pe) {
  const int rank = shmem_world_pe_(ctx, pe);
  char* const there = shmem_place_(dest, rank);
  if (MOB_UNLIKELY(there == 0)) return 0;
  /* A put to another host belongs to the context in use, which the slow call changes. */
  if (ctx != SHMEM_CTX_DEFAULT && MOB_UNLIKELY(!shmem_state_.is_one_host)) return 0;
  if (bytes == 8) {
    uint64_t value;
    __builtin_memcpy(&value, source, 8);
    return MOB_LIKELY(mob_put8(rank, there, value) == MOB_OK);
  }
  if (bytes == 4) {
    uint32_t value;
    __builtin_memcpy(&value, source, 4);
    return MOB_LIKELY(mob_put4(rank, there, value) == MOB_OK);
  }
  if (bytes == 2) {
    uint16_t value;
    __builtin_memcpy(&value, source, 2);
    return MOB_LIKELY(mob_put2(rank, there, value) == MOB_OK);
  }
  if (bytes == 1) {
    uint8_t value;
    __builtin_memcpy(&value, source, 1);
    return MOB_LIKELY(mob_put1(rank, there, value) == MOB_OK);
  }
  return 0;
}

MOB_INLINE_PART_ int shmem_load_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                 int pe) {
  const int rank = shmem_world_pe_(ctx, pe);
  const char* const there = shmem_place_(source, rank);
  if (MOB_UNLIKELY(there == 0)) return 0;
  if (bytes == 8) {
    uint64_t value;
    if (MOB_UNLIKELY(mob_get8(rank, there, &value) != MOB_OK)) return 0;
    __builtin_memcpy(dest, &value, 8);
    return 1;
  }
  if (bytes == 4) {
    uint32_t value;
    if (MOB_UNLIKELY(mob_get4(rank, there, &value) != MOB_OK)) return 0;
    __builtin_memcpy(dest, &value, 4);
    return 1;
  }
  if (bytes == 2) {
    uint16_t value;
    if (MOB_UNLIKELY(mob_get2(rank, there, &value) != MOB_OK)) return 0;
    __builtin_memcpy(dest, &value, 2);
    return 1;
  }
  if (bytes == 1) {
    uint8_t value;
    if (MOB_UNLIKELY(mob_get1(rank, there, &value) != MOB_OK)) return 0;
    __builtin_memcpy(dest, &value, 1);
    return 1;
  }
  return 0;
}

/* A call that moves one element, as the compiler can tell, is the same as shmem_p() or shmem_g().
 */
#define SHMEM_IS_ELEMENT_(bytes) \
  (__builtin_constant_p(bytes) && ((bytes) == 8 || (bytes) == 4 || (bytes) == 2 || (bytes) == 1))

MOB_INLINE_PART_ void shmem_put_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                 int pe, const char* call) {
  if (SHMEM_IS_ELEMENT_(bytes) && shmem_store_(ctx, dest, source, bytes, pe)) return;
  shmem_put_slow_(ctx, dest, source, bytes, pe, call);
}
MOB_INLINE_PART_ void shmem_put_nbi_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                     int pe, const char* call) {
  if (SHMEM_IS_ELEMENT_(bytes) && shmem_store_(ctx, dest, source, bytes, pe)) return;
  shmem_put_nbi_slow_(ctx, dest, source, bytes, pe, call);
}
MOB_INLINE_PART_ void shmem_get_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                 int pe, const char* call) {
  if (SHMEM_IS_ELEMENT_(bytes) && shmem_load_(ctx, dest, source, bytes, pe)) return;
  shmem_get_slow_(ctx, dest, source, bytes, pe, call);
}
MOB_INLINE_PART_ void shmem_get_nbi_(shmem_ctx_t ctx, void* dest, const void* source, size_t bytes,
                                     int pe, const char* call) {
  /* From another host shmem_load_() would wait for the answer. */
  if (SHMEM_IS_ELEMENT_(bytes) && MOB_LIKELY(shmem_state_.is_one_host) &&
      shmem_load_(ctx, dest, source, bytes, pe)) {
    return;
  }
  shmem_get_nbi_slow_(ctx, dest, source, bytes, pe, call);
}

/* Whether the caller may access `count` elements of `1 << log2_bytes` bytes, `stride` elements
 * apart, directly. The part that holds the first and the last holds those between them. */
MOB_INLINE_PART_ int shmem_are_direct_(int rank, const char* there, ptrdiff_t stride, size_t count,
                                       unsigned log2_bytes) {
  const ptrdiff_t most = (ptrdiff_t)1 << 28; /* so that no product overflows */
  if (MOB_UNLIKELY(there == 0) || MOB_UNLIKELY(count - 1 >= (size_t)most)) return 0;
  if (MOB_UNLIKELY(stride >= most) || MOB_UNLIKELY(stride <= -most)) return 0;
  return mob_is_direct_(rank, there, log2_bytes, MOB_BYTE_ENTRIES_) &&
         mob_is_direct_(rank,
                        there + (ptrdiff_t)(count - 1) * stride * ((ptrdiff_t)1 << log2_bytes),
                        log2_bytes, MOB_BYTE_ENTRIES_);
}

/* Copies elements at strides, 1 if it did: those of 4 and 8 bytes within a host. The elements need
 * no alignment. */
#define SHMEM_DEFINE_COPY_(BITS, LOG2_BYTES)                                                 \
  typedef uint##BITS##_t __attribute__((may_alias, aligned(1))) shmem_word##BITS##_t_;       \
  MOB_INLINE_PART_ void shmem_copy##BITS##_(void* to, const void* from, ptrdiff_t to_stride, \
                                            ptrdiff_t from_stride, size_t count) {           \
    shmem_word##BITS##_t_* out = (shmem_word##BITS##_t_*)to;                                 \
    const shmem_word##BITS##_t_* in = (const shmem_word##BITS##_t_*)from;                    \
    for (; count != 0; --count, out += to_stride, in += from_stride) *out = *in;             \
  }
SHMEM_DEFINE_COPY_(32, 2)
SHMEM_DEFINE_COPY_(64, 3)
#undef SHMEM_DEFINE_COPY_
MOB_INLINE_PART_ int shmem_iput_direct_(shmem_ctx_t ctx, void* dest, const void* source,
                                        ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t bytes,
                                        int pe) {
  const int rank = shmem_world_pe_(ctx, pe);
  char* const there = shmem_place_(dest, rank);
  if (bytes == 8) {
    if (MOB_UNLIKELY(!shmem_are_direct_(rank, there, dst, nelems, 3))) return 0;
    shmem_copy64_(there, source, dst, sst, nelems);
    return 1;
  }
  if (bytes == 4) {
    if (MOB_UNLIKELY(!shmem_are_direct_(rank, there, dst, nelems, 2))) return 0;
    shmem_copy32_(there, source, dst, sst, nelems);
    return 1;
  }
  return 0;
}
MOB_INLINE_PART_ int shmem_iget_direct_(shmem_ctx_t ctx, void* dest, const void* source,
                                        ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t bytes,
                                        int pe) {
  const int rank = shmem_world_pe_(ctx, pe);
  char* const there = shmem_place_(source, rank);
  if (bytes == 8) {
    if (MOB_UNLIKELY(!shmem_are_direct_(rank, there, sst, nelems, 3))) return 0;
    shmem_copy64_(dest, there, dst, sst, nelems);
    return 1;
  }
  if (bytes == 4) {
    if (MOB_UNLIKELY(!shmem_are_direct_(rank, there, sst, nelems, 2))) return 0;
    shmem_copy32_(dest, there, dst, sst, nelems);
    return 1;
  }
  return 0;
}
MOB_INLINE_PART_ void shmem_iput_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst,
                                  ptrdiff_t sst, size_t nelems, size_t bytes, int pe,
                                  const char* call) {
  if (MOB_LIKELY(shmem_iput_direct_(ctx, dest, source, dst, sst, nelems, bytes, pe))) return;
  shmem_iput_slow_(ctx, dest, source, dst, sst, nelems, bytes, pe, call);
}
MOB_INLINE_PART_ void shmem_iget_(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst,
                                  ptrdiff_t sst, size_t nelems, size_t bytes, int pe,
                                  const char* call) {
  if (MOB_LIKELY(shmem_iget_direct_(ctx, dest, source, dst, sst, nelems, bytes, pe))) {
    /* A loop that waits for a change must not keep the elements in registers; later accesses come
     * after these, as with mob_get8(). */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return;
  }
  shmem_iget_slow_(ctx, dest, source, dst, sst, nelems, bytes, pe, call);
}

/* The value is copied on the rare path only: otherwise its address would be taken on both, and it
 * would live in memory. */
#define SHMEM_P_(ctx, T, dest, value, pe, call)                            \
  do {                                                                     \
    if (MOB_UNLIKELY(!shmem_store_(ctx, dest, &(value), sizeof(T), pe))) { \
      T copy_ = (value);                                                   \
      shmem_put_slow_(ctx, dest, &copy_, sizeof(T), pe, call);             \
    }                                                                      \
  } while (0)
#define SHMEM_G_(ctx, T, source, pe, call)                              \
  do {                                                                  \
    T value_;                                                           \
    if (MOB_LIKELY(shmem_load_(ctx, &value_, source, sizeof(T), pe))) { \
      return value_;                                                    \
    } else {                                                            \
      T fetched_;                                                       \
      shmem_get_slow_(ctx, &fetched_, source, sizeof(T), pe, call);     \
      return fetched_;                                                  \
    }                                                                   \
  } while (0)

/* An atomic set and fetch. Between hosts a put is not atomic beside updates (mobius/atomic.h). */
#define SHMEM_SET_(ctx, T, dest, value, pe, call)                                 \
  do {                                                                            \
    if (MOB_LIKELY(shmem_state_.is_one_host)) {                                   \
      SHMEM_P_(ctx, T, dest, value, pe, call);                                    \
    } else {                                                                      \
      T of_set_ = (value);                                                        \
      uint64_t word_ = 0;                                                         \
      __builtin_memcpy(&word_, &of_set_, sizeof(T)); /* little-endian */          \
      shmem_update_slow_(ctx, SHMEM_AMO_SWAP_, dest, word_, sizeof(T), pe, call); \
    }                                                                             \
  } while (0)
#define SHMEM_FETCH_(ctx, T, source, pe, call)                                    \
  do {                                                                            \
    T value_;                                                                     \
    if (MOB_LIKELY(shmem_load_(ctx, &value_, source, sizeof(T), pe))) {           \
      return value_;                                                              \
    } else {                                                                      \
      const uint64_t word_ = shmem_fetch_slow_(ctx, source, sizeof(T), pe, call); \
      T fetched_;                                                                 \
      __builtin_memcpy(&fetched_, &word_, sizeof(T));                             \
      return fetched_;                                                            \
    }                                                                             \
  } while (0)

#define SHMEM_DEFINE_AMO_OF_(op, what)                                                           \
  MOB_INLINE_PART_ uint64_t shmem_##op##_word_(shmem_ctx_t ctx, void* dest, uint64_t value,      \
                                               unsigned bytes, int pe, const char* call) {       \
    const int rank = shmem_world_pe_(ctx, pe);                                                   \
    char* const there = shmem_place_(dest, rank);                                                \
    if (MOB_LIKELY(there != 0)) {                                                                \
      uint64_t old8;                                                                             \
      uint32_t old4;                                                                             \
      if (bytes == 8) {                                                                          \
        if (MOB_LIKELY(mob_##op##8(rank, there, value, &old8) == MOB_OK)) return old8;           \
      } else {                                                                                   \
        if (MOB_LIKELY(mob_##op##4(rank, there, (uint32_t)value, &old4) == MOB_OK)) return old4; \
      }                                                                                          \
    }                                                                                            \
    return shmem_amo_slow_(ctx, what, dest, value, 0, bytes, pe, call);                          \
  }
SHMEM_DEFINE_AMO_OF_(fetch_add, SHMEM_AMO_ADD_)
SHMEM_DEFINE_AMO_OF_(fetch_and, SHMEM_AMO_AND_)
SHMEM_DEFINE_AMO_OF_(fetch_or, SHMEM_AMO_OR_)
SHMEM_DEFINE_AMO_OF_(fetch_xor, SHMEM_AMO_XOR_)
SHMEM_DEFINE_AMO_OF_(swap, SHMEM_AMO_SWAP_)
#undef SHMEM_DEFINE_AMO_OF_

MOB_INLINE_PART_ uint64_t shmem_compare_swap_word_(shmem_ctx_t ctx, void* dest, uint64_t expected,
                                                   uint64_t value, unsigned bytes, int pe,
                                                   const char* call) {
  const int rank = shmem_world_pe_(ctx, pe);
  char* const there = shmem_place_(dest, rank);
  if (MOB_LIKELY(there != 0)) {
    uint64_t old8;
    uint32_t old4;
    if (bytes == 8) {
      if (MOB_LIKELY(mob_compare_swap8(rank, there, expected, value, &old8) == MOB_OK)) return old8;
    } else {
      if (MOB_LIKELY(mob_compare_swap4(rank, there, (uint32_t)expected, (uint32_t)value, &old4) ==
                     MOB_OK)) {
        return old4;
      }
    }
  }
  return shmem_amo_slow_(ctx, SHMEM_AMO_COMPARE_SWAP_, dest, value, expected, bytes, pe, call);
}

/* An update without the former value. On this host it is the fetching instruction; other hosts need
 * not answer. */
MOB_INLINE_PART_ void shmem_update_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                                    unsigned bytes, int pe, const char* call) {
  if (MOB_UNLIKELY(!shmem_state_.is_one_host)) {
    shmem_update_slow_(ctx, what, dest, value, bytes, pe, call);
  } else if (what == SHMEM_AMO_ADD_) {
    shmem_fetch_add_word_(ctx, dest, value, bytes, pe, call);
  } else if (what == SHMEM_AMO_AND_) {
    shmem_fetch_and_word_(ctx, dest, value, bytes, pe, call);
  } else if (what == SHMEM_AMO_OR_) {
    shmem_fetch_or_word_(ctx, dest, value, bytes, pe, call);
  } else {
    shmem_fetch_xor_word_(ctx, dest, value, bytes, pe, call);
  }
}

/* Words of real numbers are swapped as integers. */
MOB_INLINE_PART_ float shmem_float_swap_word_(shmem_ctx_t ctx, float* dest, float value, int pe,
                                              const char* call) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  bits = (uint32_t)shmem_swap_word_(ctx, dest, bits, 4, pe, call);
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
MOB_INLINE_PART_ double shmem_double_swap_word_(shmem_ctx_t ctx, double* dest, double value, int pe,
                                                const char* call) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, 8);
  bits = shmem_swap_word_(ctx, dest, bits, 8, pe, call);
  __builtin_memcpy(&value, &bits, 8);
  return value;
}

#ifdef SHMEM_EMIT_SYMBOLS_
/* In the library: the twin, and the name as its alias. */
#define SHMEM_INLINE_(result, name, parameters)                                        \
  extern result shmem_##name parameters __attribute__((weak, alias("pshmem_" #name))); \
  MOB_API result pshmem_##name parameters
#else
#define SHMEM_INLINE_(result, name, parameters)                                  \
  extern inline __attribute__((visibility("default"), always_inline, gnu_inline, \
                               unused)) result shmem_##name parameters
#endif

SHMEM_INLINE_(int, my_pe, (void)) { return shmem_state_.me; }
SHMEM_INLINE_(int, n_pes, (void)) { return shmem_state_.n_pes; }

SHMEM_INLINE_(void, quiet, (void)) {
  if (MOB_UNLIKELY(mob_flush_all() != MOB_OK)) shmem_quiet_failed_("shmem_quiet");
}
SHMEM_INLINE_(void, fence, (void)) {
  if (MOB_UNLIKELY(mob_fence() != MOB_OK)) shmem_fence_slow_(SHMEM_CTX_DEFAULT, "shmem_fence");
}

/* A function without a context, and the same with one. The body sees `ctx` and, for messages, the
 * name `call`. */
#define SHMEM_ALONE_(result, NAME, body, ...)  \
  SHMEM_INLINE_(result, NAME, (__VA_ARGS__)) { \
    const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT; \
    const char* const call = "shmem_" #NAME;   \
    body;                                      \
  }
#define SHMEM_BOTH_(result, NAME, body, ...)                          \
  SHMEM_ALONE_(result, NAME, body, __VA_ARGS__)                       \
  SHMEM_INLINE_(result, ctx_##NAME, (shmem_ctx_t ctx, __VA_ARGS__)) { \
    const char* const call = "shmem_ctx_" #NAME;                      \
    body;                                                             \
  }

#define SHMEM_DEFINE_MOVE_(NAME, T, BYTES, MOVE)                                      \
  SHMEM_BOTH_(void, NAME, MOVE(ctx, dest, source, nelems*(BYTES), pe, call), T* dest, \
              const T* source, size_t nelems, int pe)
#define SHMEM_DEFINE_MOVES_(PUT, GET, T, BYTES)           \
  SHMEM_DEFINE_MOVE_(PUT, T, BYTES, shmem_put_)           \
  SHMEM_DEFINE_MOVE_(GET, T, BYTES, shmem_get_)           \
  SHMEM_DEFINE_MOVE_(PUT##_nbi, T, BYTES, shmem_put_nbi_) \
  SHMEM_DEFINE_MOVE_(GET##_nbi, T, BYTES, shmem_get_nbi_)
#define SHMEM_DEFINE_STRIDED_(NAME, T, BYTES, MOVE)                                            \
  SHMEM_BOTH_(void, NAME, MOVE(ctx, dest, source, dst, sst, nelems, BYTES, pe, call), T* dest, \
              const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)
#define SHMEM_DEFINE_RMA_(A, N, T)                                                            \
  SHMEM_BOTH_(void, N##_p, SHMEM_P_(ctx, T, dest, value, pe, call), T* dest, T value, int pe) \
  SHMEM_BOTH_(T, N##_g, SHMEM_G_(ctx, T, source, pe, call), const T* source, int pe)          \
  SHMEM_DEFINE_MOVES_(N##_put, N##_get, T, sizeof(T))                                         \
  SHMEM_DEFINE_STRIDED_(N##_iput, T, sizeof(T), shmem_iput_)                                  \
  SHMEM_DEFINE_STRIDED_(N##_iget, T, sizeof(T), shmem_iget_)
#define SHMEM_DEFINE_SIZED_(A, BITS, BYTES)                   \
  SHMEM_DEFINE_MOVES_(put##BITS, get##BITS, void, BYTES)      \
  SHMEM_DEFINE_STRIDED_(iput##BITS, void, BYTES, shmem_iput_) \
  SHMEM_DEFINE_STRIDED_(iget##BITS, void, BYTES, shmem_iget_)
SHMEM_LIST_RMA_(SHMEM_DEFINE_RMA_, )
SHMEM_LIST_SIZES_(SHMEM_DEFINE_SIZED_, )
SHMEM_DEFINE_MOVES_(putmem, getmem, void, 1)

#define SHMEM_DEFINE_AMO_EXTENDED_(A, N, T)                                                      \
  SHMEM_BOTH_(T, N##_atomic_fetch, SHMEM_FETCH_(ctx, T, source, pe, call), const T* source,      \
              int pe)                                                                            \
  SHMEM_ALONE_(T, N##_fetch, SHMEM_FETCH_(ctx, T, source, pe, call), const T* source, int pe)    \
  SHMEM_BOTH_(void, N##_atomic_set, SHMEM_SET_(ctx, T, dest, value, pe, call), T* dest, T value, \
              int pe)                                                                            \
  SHMEM_ALONE_(void, N##_set, SHMEM_SET_(ctx, T, dest, value, pe, call), T* dest, T value, int pe)
#define SHMEM_DEFINE_AMO_REAL_(A, N, T)                                                          \
  SHMEM_DEFINE_AMO_EXTENDED_(A, N, T)                                                            \
  SHMEM_BOTH_(T, N##_atomic_swap, return shmem_##N##_swap_word_(ctx, dest, value, pe, call),     \
              T * dest, T value, int pe)                                                         \
  SHMEM_ALONE_(T, N##_swap, return shmem_##N##_swap_word_(ctx, dest, value, pe, call), T * dest, \
               T value, int pe)
/* The forms with ALONE_ are the deprecated names. */
#define SHMEM_FETCHED_(T, WORD, value) \
  return (T)WORD(ctx, dest, (uint64_t)(value), sizeof(T), pe, call)
#define SHMEM_COMPARED_(T)                                                                      \
  return (T)shmem_compare_swap_word_(ctx, dest, (uint64_t)cond, (uint64_t)value, sizeof(T), pe, \
                                     call)
#define SHMEM_UPDATED_(T, what, value) \
  shmem_update_(ctx, what, dest, (uint64_t)(value), sizeof(T), pe, call)
#define SHMEM_DEFINE_AMO_(A, N, T)                                                                \
  SHMEM_DEFINE_AMO_EXTENDED_(A, N, T)                                                             \
  SHMEM_BOTH_(T, N##_atomic_swap, SHMEM_FETCHED_(T, shmem_swap_word_, value), T* dest, T value,   \
              int pe)                                                                             \
  SHMEM_ALONE_(T, N##_swap, SHMEM_FETCHED_(T, shmem_swap_word_, value), T* dest, T value, int pe) \
  SHMEM_BOTH_(T, N##_atomic_compare_swap, SHMEM_COMPARED_(T), T* dest, T cond, T value, int pe)   \
  SHMEM_ALONE_(T, N##_cswap, SHMEM_COMPARED_(T), T* dest, T cond, T value, int pe)                \
  SHMEM_BOTH_(T, N##_atomic_fetch_add, SHMEM_FETCHED_(T, shmem_fetch_add_word_, value), T* dest,  \
              T value, int pe)                                                                    \
  SHMEM_ALONE_(T, N##_fadd, SHMEM_FETCHED_(T, shmem_fetch_add_word_, value), T* dest, T value,    \
               int pe)                                                                            \
  SHMEM_BOTH_(T, N##_atomic_fetch_inc, SHMEM_FETCHED_(T, shmem_fetch_add_word_, 1), T* dest,      \
              int pe)                                                                             \
  SHMEM_ALONE_(T, N##_finc, SHMEM_FETCHED_(T, shmem_fetch_add_word_, 1), T* dest, int pe)         \
  SHMEM_BOTH_(void, N##_atomic_add, SHMEM_UPDATED_(T, SHMEM_AMO_ADD_, value), T* dest, T value,   \
              int pe)                                                                             \
  SHMEM_ALONE_(void, N##_add, SHMEM_UPDATED_(T, SHMEM_AMO_ADD_, value), T* dest, T value, int pe) \
  SHMEM_BOTH_(void, N##_atomic_inc, SHMEM_UPDATED_(T, SHMEM_AMO_ADD_, 1), T* dest, int pe)        \
  SHMEM_ALONE_(void, N##_inc, SHMEM_UPDATED_(T, SHMEM_AMO_ADD_, 1), T* dest, int pe)
#define SHMEM_DEFINE_AMO_BITS_(OP, WHAT, N, T)                                              \
  SHMEM_BOTH_(T, N##_atomic_fetch_##OP, SHMEM_FETCHED_(T, shmem_fetch_##OP##_word_, value), \
              T* dest, T value, int pe)                                                     \
  SHMEM_BOTH_(void, N##_atomic_##OP, SHMEM_UPDATED_(T, WHAT, value), T* dest, T value, int pe)
#define SHMEM_DEFINE_AND_(A, N, T) SHMEM_DEFINE_AMO_BITS_(and, SHMEM_AMO_AND_, N, T)
#define SHMEM_DEFINE_OR_(A, N, T) SHMEM_DEFINE_AMO_BITS_(or, SHMEM_AMO_OR_, N, T)
#define SHMEM_DEFINE_XOR_(A, N, T) SHMEM_DEFINE_AMO_BITS_(xor, SHMEM_AMO_XOR_, N, T)
SHMEM_LIST_AMO_REALS_(SHMEM_DEFINE_AMO_REAL_, )
SHMEM_LIST_AMO_(SHMEM_DEFINE_AMO_, )
SHMEM_LIST_AMO_BITS_(SHMEM_DEFINE_AND_, )
SHMEM_LIST_AMO_BITS_(SHMEM_DEFINE_OR_, )
SHMEM_LIST_AMO_BITS_(SHMEM_DEFINE_XOR_, )

/* Waits for words: the first look is inlined. */
#define SHMEM_WAITED_(T, call_of_word, otherwise)                                        \
  do {                                                                                   \
    if (sizeof(T) == 8                                                                   \
            ? ((T) - 1 > (T)1 ? call_of_word(u8, uint64_t) : call_of_word(i8, int64_t))  \
            : ((T) - 1 > (T)1 ? call_of_word(u4, uint32_t) : call_of_word(i4, int32_t))) \
      return otherwise;                                                                  \
  } while (0)
#define SHMEM_TYPE_(T)                                        \
  (sizeof(T) == 8 ? ((T) - 1 > (T)1 ? MOB_UINT64 : MOB_INT64) \
                  : ((T) - 1 > (T)1 ? MOB_UINT32 : MOB_INT32))
#define SHMEM_HOLDS_(suffix, word) \
  mob_holds_##suffix##_((const word*)(const void*)ivar, (mob_compare_t)cmp, (word)cmp_value)
#define SHMEM_DEFINE_WAIT_(A, N, T)                                                               \
  SHMEM_INLINE_(void, N##_wait_until, (T * ivar, int cmp, T cmp_value)) {                         \
    SHMEM_WAITED_(T, SHMEM_HOLDS_, );                                                             \
    shmem_wait_slow_(ivar, SHMEM_TYPE_(T), cmp, (uint64_t)cmp_value, "shmem_" #N "_wait_until");  \
  }                                                                                               \
  SHMEM_INLINE_(int, N##_test, (T * ivar, int cmp, T cmp_value)) {                                \
    SHMEM_WAITED_(T, SHMEM_HOLDS_, 1);                                                            \
    return shmem_test_slow_(ivar, SHMEM_TYPE_(T), cmp, (uint64_t)cmp_value, "shmem_" #N "_test"); \
  }
SHMEM_LIST_AMO_(SHMEM_DEFINE_WAIT_, )
SHMEM_INLINE_(uint64_t, signal_fetch, (const uint64_t* sig_addr)) {
  return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

#undef SHMEM_P_
#undef SHMEM_G_
#undef SHMEM_ALONE_
#undef SHMEM_BOTH_
#undef SHMEM_DEFINE_MOVE_
#undef SHMEM_DEFINE_MOVES_
#undef SHMEM_DEFINE_STRIDED_
#undef SHMEM_DEFINE_RMA_
#undef SHMEM_DEFINE_SIZED_
#undef SHMEM_DEFINE_AMO_EXTENDED_
#undef SHMEM_DEFINE_AMO_REAL_
#undef SHMEM_FETCHED_
#undef SHMEM_COMPARED_
#undef SHMEM_UPDATED_
#undef SHMEM_DEFINE_AMO_
#undef SHMEM_DEFINE_AMO_BITS_
#undef SHMEM_DEFINE_AND_
#undef SHMEM_DEFINE_OR_
#undef SHMEM_DEFINE_XOR_
#undef SHMEM_WAITED_
#undef SHMEM_TYPE_
#undef SHMEM_HOLDS_
#undef SHMEM_DEFINE_WAIT_

#endif
