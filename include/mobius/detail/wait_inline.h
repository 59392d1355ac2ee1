/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_DETAIL_WAIT_INLINE_H
#define MOBIUS_DETAIL_WAIT_INLINE_H

/* The inlined first check of wait.h. Not an interface: programs call nothing here.
 *
 * The out-of-line call handles everything except a condition that holds already, errors included.
 */

#include <mobius/rma.h>

/* `value` has the word's type, extended to 64 bits. */
MOB_API mob_status_t mob_wait_word_(const void* word, mob_type_t type, mob_compare_t compare,
                                    uint64_t value);
MOB_API mob_status_t mob_test_word_(const void* word, mob_type_t type, mob_compare_t compare,
                                    uint64_t value, int* done);

#define MOB_DEFINE_WORD_WAIT_(suffix, ctype, type)                                              \
  typedef ctype __attribute__((may_alias)) mob_word_##suffix##_t_;                              \
  MOB_INLINE_PART_ int mob_holds_##suffix##_(const ctype* word, mob_compare_t compare,          \
                                             ctype value) {                                     \
    ctype seen;                                                                                 \
    if (MOB_UNLIKELY(mob_size_ == 0 || word == NULL || (uintptr_t)word % sizeof(ctype) != 0)) { \
      return 0;                                                                                 \
    }                                                                                           \
    seen = __atomic_load_n((const mob_word_##suffix##_t_*)word, __ATOMIC_ACQUIRE);              \
    switch (compare) {                                                                          \
      case MOB_EQ:                                                                              \
        return seen == value;                                                                   \
      case MOB_NE:                                                                              \
        return seen != value;                                                                   \
      case MOB_GT:                                                                              \
        return seen > value;                                                                    \
      case MOB_GE:                                                                              \
        return seen >= value;                                                                   \
      case MOB_LT:                                                                              \
        return seen < value;                                                                    \
      case MOB_LE:                                                                              \
        return seen <= value;                                                                   \
      default:                                                                                  \
        return 0;                                                                               \
    }                                                                                           \
  }                                                                                             \
  MOB_INLINE mob_status_t mob_wait_until_##suffix(const ctype* word, mob_compare_t compare,     \
                                                  ctype value) {                                \
    if (mob_holds_##suffix##_(word, compare, value)) return MOB_OK;                             \
    return mob_wait_word_(word, type, compare, (uint64_t)value);                                \
  }                                                                                             \
  MOB_INLINE mob_status_t mob_test_until_##suffix(const ctype* word, mob_compare_t compare,     \
                                                  ctype value, int* done) {                     \
    if (MOB_LIKELY(done != NULL) && mob_holds_##suffix##_(word, compare, value)) {              \
      *done = 1;                                                                                \
      return MOB_OK;                                                                            \
    }                                                                                           \
    return mob_test_word_(word, type, compare, (uint64_t)value, done);                          \
  }

MOB_DEFINE_WORD_WAIT_(i4, int32_t, MOB_INT32)
MOB_DEFINE_WORD_WAIT_(u4, uint32_t, MOB_UINT32)
MOB_DEFINE_WORD_WAIT_(i8, int64_t, MOB_INT64)
MOB_DEFINE_WORD_WAIT_(u8, uint64_t, MOB_UINT64)

#undef MOB_DEFINE_WORD_WAIT_

#endif
