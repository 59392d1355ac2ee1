/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DETAIL_INLINE_H
#define MOBIUS_DETAIL_INLINE_H

/* The inlined paths of rma.h. Not an interface: programs call nothing here.
 *
 * Each target rank has one entry, which describes the part of that rank that was used last. One
 * subtraction and one unsigned comparison check everything at once: that the library is
 * initialised, that the entry belongs to the rank, that the address lies in the part, and that the
 * whole value does. The rank is folded into the address above bit 47, where user addresses have no
 * bits. The out-of-line call handles all other cases (another part, another host, no common
 * address, an error); it also moves the entry to the part it found
 * (src/engine/segment/window/translation_cache.h).
 *
 * Atomic updates of words have entries of their own, behind the others. A part is entered there
 * only once accumulates leave its words to atomic instructions
 * (src/engine/segment/locks/accumulate_locks.h).
 *
 * One thread at a time changes an entry, but other threads read it meanwhile. A reader may combine
 * the origin of one part with the limit of another. Both are parts of the same rank, so the worst
 * result for a valid access is the out-of-line call. Only the error of an access that was wrong
 * anyway may go unnoticed. */

#include <mobius/memory.h>

enum {
  MOB_RANK_INDEX_BITS_ = 15, /* the low bits of a rank choose its entry */
  MOB_RANK_SHIFT_ = 47,      /* the other 17 bits are the tag above the address */
  MOB_BYTE_ENTRIES_ = 0,     /* index of the entries for puts and gets */
  MOB_WORD_ENTRIES_ = 1 << MOB_RANK_INDEX_BITS_ /* index of the entries for atomic updates */
};

typedef struct mob_target_ {
  uint64_t origin;   /* first address of the part, plus the rank's tag */
  uint64_t limit[4]; /* offsets below limit[k] have room for 1 << k bytes; 0 in an unused entry */
  /* The part used before this one, for the out-of-line calls only. */
  uint64_t other_origin;
  uint64_t other_bytes;
  uint32_t recalls; /* number of times it was found there */
  uint16_t busy;    /* 1 while a thread changes the entry */
  uint16_t is_view; /* 1: the entry describes a view, not a part
                       (src/engine/rma/exposed/remap_views.h) */
} __attribute__((aligned(64))) mob_target_t_;

/* 1 << MOB_RANK_INDEX_BITS_ entries, then as many for words. */
extern MOB_API mob_target_t_* const mob_targets_;
extern MOB_API int32_t mob_size_;         /* processes in the job, 0 outside init … finalize */
extern MOB_API int32_t mob_settled_size_; /* the same, or 0 while transfers are under way */
/* The same, or 0 while transfers are under way or once the program has sent messages. */
extern MOB_API int32_t mob_idle_size_;

MOB_API mob_status_t mob_put_value_(mob_rank_t rank, void* remote, uint64_t value,
                                    unsigned log2_bytes);
MOB_API mob_status_t mob_get_value_(mob_rank_t rank, const void* remote, void* value,
                                    unsigned log2_bytes);
MOB_API mob_status_t mob_flush_rank_(mob_rank_t rank, int remote);
MOB_API mob_status_t mob_flush_ranks_(int remote); /* all ranks */
MOB_API mob_status_t mob_fence_out_of_line_(void);

#ifdef __SANITIZE_THREAD__ /* the race described above, in a form that ThreadSanitizer accepts */
#define MOB_ENTRY_LOAD_(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define MOB_PUT_ORDER_ __ATOMIC_RELEASE /* it does not know mob_fence()'s fence */
#else
#define MOB_ENTRY_LOAD_(field) (field)
#define MOB_PUT_ORDER_ __ATOMIC_RELAXED
#endif

/* 1 if the caller may access `1 << log2_bytes` bytes at `remote` directly, by the given entries. */
MOB_INLINE_PART_ int mob_is_direct_(mob_rank_t rank, const void* remote, unsigned log2_bytes,
                                    unsigned entries) {
  const mob_target_t_* entry =
      &mob_targets_[entries + ((uint32_t)rank & ((1u << MOB_RANK_INDEX_BITS_) - 1))];
  uint64_t tag = (uint64_t)((uint32_t)rank >> MOB_RANK_INDEX_BITS_) << MOB_RANK_SHIFT_;
  uint64_t tagged = (uint64_t)(uintptr_t)remote + tag;
  /* Keep `entry` and `tagged` as computed: otherwise GCC computes both anew at each use, which
   * lengthens a loop of puts by half. */
  __asm__("" : "+r"(entry));
  __asm__("" : "+r"(tagged));
  return MOB_LIKELY(tagged - MOB_ENTRY_LOAD_(entry->origin) <
                    MOB_ENTRY_LOAD_(entry->limit[log2_bytes]));
}

#define MOB_DEFINE_VALUE_TRANSFER_(suffix, type, log2_bytes)                                  \
  typedef type __attribute__((may_alias)) mob_value##suffix##_t_;                             \
  MOB_INLINE mob_status_t mob_put##suffix(mob_rank_t rank, void* remote, type value) {        \
    if (mob_is_direct_(rank, remote, log2_bytes, MOB_BYTE_ENTRIES_)) {                        \
      __atomic_store_n((mob_value##suffix##_t_*)remote, value, MOB_PUT_ORDER_);               \
      return MOB_OK;                                                                          \
    }                                                                                         \
    return mob_put_value_(rank, remote, value, log2_bytes);                                   \
  }                                                                                           \
  MOB_INLINE mob_status_t mob_get##suffix(mob_rank_t rank, const void* remote, type* value) { \
    if (MOB_LIKELY(value != NULL) &&                                                          \
        mob_is_direct_(rank, remote, log2_bytes, MOB_BYTE_ENTRIES_)) {                        \
      *value = __atomic_load_n((const mob_value##suffix##_t_*)remote, __ATOMIC_ACQUIRE);      \
      return MOB_OK;                                                                          \
    }                                                                                         \
    return mob_get_value_(rank, remote, value, log2_bytes);                                   \
  }

MOB_DEFINE_VALUE_TRANSFER_(8, uint64_t, 3)
MOB_DEFINE_VALUE_TRANSFER_(4, uint32_t, 2)
MOB_DEFINE_VALUE_TRANSFER_(2, uint16_t, 1)
MOB_DEFINE_VALUE_TRANSFER_(1, uint8_t, 0)

#undef MOB_DEFINE_VALUE_TRANSFER_

MOB_INLINE mob_status_t mob_flush(mob_rank_t rank) {
  if (MOB_UNLIKELY((uint32_t)rank >= (uint32_t)MOB_ENTRY_LOAD_(mob_idle_size_))) {
    return mob_flush_rank_(rank, 1);
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return MOB_OK;
}

MOB_INLINE mob_status_t mob_flush_all(void) {
  if (MOB_UNLIKELY(MOB_ENTRY_LOAD_(mob_idle_size_) == 0)) return mob_flush_ranks_(1);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return MOB_OK;
}

MOB_INLINE mob_status_t mob_flush_local(mob_rank_t rank) {
  if (MOB_UNLIKELY((uint32_t)rank >= (uint32_t)MOB_ENTRY_LOAD_(mob_settled_size_))) {
    return mob_flush_rank_(rank, 0);
  }
  return MOB_OK;
}

MOB_INLINE mob_status_t mob_flush_local_all(void) {
  return MOB_UNLIKELY(MOB_ENTRY_LOAD_(mob_settled_size_) == 0) ? mob_flush_ranks_(0) : MOB_OK;
}

MOB_INLINE mob_status_t mob_fence(void) {
  if (MOB_UNLIKELY(MOB_ENTRY_LOAD_(mob_settled_size_) == 0)) return mob_fence_out_of_line_();
  __atomic_thread_fence(__ATOMIC_RELEASE);
  return MOB_OK;
}

#endif
