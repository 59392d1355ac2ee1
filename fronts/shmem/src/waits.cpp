// SPDX-License-Identifier: BSD-3-Clause

// Waiting for words of the caller that other PEs change.

#include <sched.h>

#include <cstdint>
#include <type_traits>

#include "front.h"

namespace mobius::shmem {
namespace {

void check_word(const void* ivar, int cmp, const char* call) {
  check_started(call);
  if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE) {
    die(call, "cmp is %d; it must be one of SHMEM_CMP_EQ, _NE, _GT, _GE, _LT and _LE", cmp);
  }
  if (debugs()) offset_of(ivar, call, "ivar");
}

template <typename T>
constexpr mob_type_t type_of() {
  if (sizeof(T) == 8) return std::is_signed_v<T> ? MOB_INT64 : MOB_UINT64;
  return std::is_signed_v<T> ? MOB_INT32 : MOB_UINT32;
}

template <typename T>
mob_wait_set_t set_of(T* ivars, size_t nelems, const int* status, int cmp, const T* values,
                      bool is_one, const char* call) {
  if (nelems != 0) check_word(ivars, cmp, call);
  mob_wait_set_t set = {};
  set.words = ivars;
  set.count = nelems;
  set.type = type_of<T>();
  set.compare = static_cast<mob_compare_t>(cmp);
  set.values = values;
  set.one_value = is_one ? 1 : 0;
  set.excluded = status;
  return set;
}

void wait_all(const mob_wait_set_t& set, const char* call) {
  check(mob_wait_until_all(&set), call);
}

size_t wait_any(const mob_wait_set_t& set, const char* call) {
  size_t index = 0;
  check(mob_wait_until_any(&set, &index), call);
  return index < set.count ? index : SIZE_MAX;
}

size_t wait_some(const mob_wait_set_t& set, size_t* indices, const char* call) {
  size_t found = 0;
  check(mob_wait_until_some(&set, indices, &found), call);
  return found;
}

int test_all(const mob_wait_set_t& set, const char* call) {
  int done = 0;
  check(mob_test_until_all(&set, &done), call);
  return done;
}

size_t test_any(const mob_wait_set_t& set, const char* call) {
  size_t index = 0;
  check(mob_test_until_any(&set, &index), call);
  return index < set.count ? index : SIZE_MAX;
}

size_t test_some(const mob_wait_set_t& set, size_t* indices, const char* call) {
  size_t found = 0;
  check(mob_test_until_some(&set, indices, &found), call);
  return found;
}

// Words of 2 bytes, which only deprecated forms have.
template <typename T>
bool holds(const T* ivar, int cmp, T value) {
  const T seen = __atomic_load_n(ivar, __ATOMIC_ACQUIRE);
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return seen == value;
    case SHMEM_CMP_NE:
      return seen != value;
    case SHMEM_CMP_GT:
      return seen > value;
    case SHMEM_CMP_GE:
      return seen >= value;
    case SHMEM_CMP_LT:
      return seen < value;
    default:
      return seen <= value;
  }
}

template <typename T>
void wait_short(const T* ivar, int cmp, T value, const char* call) {
  check_word(ivar, cmp, call);
  while (!holds(ivar, cmp, value)) {
    check(mob_poll(), call);
    sched_yield();
  }
}

template <typename T>
int test_short(const T* ivar, int cmp, T value, const char* call) {
  check_word(ivar, cmp, call);
  if (holds(ivar, cmp, value)) return 1;
  check(mob_poll(), call);
  return 0;
}

// Several of them, each with a value or all with one.
template <typename T>
struct ShortSet {
  const T* words;
  size_t count;
  const int* excluded;
  int cmp;
  const T* values;
  bool is_one;

  bool takes(size_t i) const { return excluded == nullptr || excluded[i] == 0; }
  bool holds_at(size_t i) const { return holds(words + i, cmp, values[is_one ? 0 : i]); }
  bool takes_any() const {
    for (size_t i = 0; i < count; ++i) {
      if (takes(i)) return true;
    }
    return false;
  }
};

template <typename T>
  requires(sizeof(T) == 2)
ShortSet<T> set_of(T* ivars, size_t nelems, const int* status, int cmp, const T* values,
                   bool is_one, const char* call) {
  if (nelems != 0) check_word(ivars, cmp, call);
  return {ivars, nelems, status, cmp, values, is_one};
}

template <typename T>
int test_all(const ShortSet<T>& set, const char* call) {
  for (size_t i = 0; i < set.count; ++i) {
    if (!set.takes(i) || set.holds_at(i)) continue;
    check(mob_poll(), call);
    return 0;
  }
  return 1;
}

template <typename T>
size_t test_any(const ShortSet<T>& set, const char* call) {
  for (size_t i = 0; i < set.count; ++i) {
    if (set.takes(i) && set.holds_at(i)) return i;
  }
  check(mob_poll(), call);
  return SIZE_MAX;
}

template <typename T>
size_t test_some(const ShortSet<T>& set, size_t* indices, const char* call) {
  size_t found = 0;
  for (size_t i = 0; i < set.count; ++i) {
    if (set.takes(i) && set.holds_at(i)) indices[found++] = i;
  }
  if (found == 0) check(mob_poll(), call);
  return found;
}

// One after the other: each has to hold at some time.
template <typename T>
void wait_all(const ShortSet<T>& set, const char* call) {
  for (size_t i = 0; i < set.count; ++i) {
    if (!set.takes(i)) continue;
    wait_short(set.words + i, set.cmp, set.values[set.is_one ? 0 : i], call);
  }
}

template <typename T>
size_t wait_any(const ShortSet<T>& set, const char* call) {
  if (!set.takes_any()) return SIZE_MAX;
  for (;;) {
    const size_t found = test_any(set, call);
    if (found != SIZE_MAX) return found;
    sched_yield();
  }
}

template <typename T>
size_t wait_some(const ShortSet<T>& set, size_t* indices, const char* call) {
  if (!set.takes_any()) return 0;
  for (;;) {
    const size_t found = test_some(set, indices, call);
    if (found != 0) return found;
    sched_yield();
  }
}

}  // namespace
}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void shmem_wait_slow_(const void* ivar, mob_type_t type, int cmp, uint64_t value,
                      const char* call) {
  check_word(ivar, cmp, call);
  const auto compare = static_cast<mob_compare_t>(cmp);
  switch (type) {
    case MOB_INT32:
      return check(mob_wait_until_i4(static_cast<const int32_t*>(ivar), compare,
                                     static_cast<int32_t>(value)),
                   call);
    case MOB_UINT32:
      return check(mob_wait_until_u4(static_cast<const uint32_t*>(ivar), compare,
                                     static_cast<uint32_t>(value)),
                   call);
    case MOB_INT64:
      return check(mob_wait_until_i8(static_cast<const int64_t*>(ivar), compare,
                                     static_cast<int64_t>(value)),
                   call);
    default:
      return check(mob_wait_until_u8(static_cast<const uint64_t*>(ivar), compare, value), call);
  }
}

int shmem_test_slow_(const void* ivar, mob_type_t type, int cmp, uint64_t value, const char* call) {
  check_word(ivar, cmp, call);
  const auto compare = static_cast<mob_compare_t>(cmp);
  int done = 0;
  switch (type) {
    case MOB_INT32:
      check(mob_test_until_i4(static_cast<const int32_t*>(ivar), compare,
                              static_cast<int32_t>(value), &done),
            call);
      break;
    case MOB_UINT32:
      check(mob_test_until_u4(static_cast<const uint32_t*>(ivar), compare,
                              static_cast<uint32_t>(value), &done),
            call);
      break;
    case MOB_INT64:
      check(mob_test_until_i8(static_cast<const int64_t*>(ivar), compare,
                              static_cast<int64_t>(value), &done),
            call);
      break;
    default:
      check(mob_test_until_u8(static_cast<const uint64_t*>(ivar), compare, value, &done), call);
  }
  return done;
}

}  // extern "C"

SHMEM_TWIN(void, wait, (long* ivar, long cmp_value)) {
  shmem_wait_slow_(ivar, MOB_INT64, SHMEM_CMP_NE, static_cast<uint64_t>(cmp_value), "shmem_wait");
}
SHMEM_TWIN(void, wait_until, (long* ivar, int cmp, long cmp_value)) {
  shmem_wait_slow_(ivar, MOB_INT64, cmp, static_cast<uint64_t>(cmp_value), "shmem_wait_until");
}

SHMEM_TWIN(uint64_t, signal_wait_until, (uint64_t* sig_addr, int cmp, uint64_t cmp_value)) {
  // A later signal may change the word again: the value is one that fulfilled the comparison.
  for (;;) {
    shmem_wait_slow_(sig_addr, MOB_UINT64, cmp, cmp_value, "shmem_signal_wait_until");
    const uint64_t seen = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    if (holds(&seen, cmp, cmp_value)) return seen;
  }
}

#define ARGUMENTS_ONE ivars, nelems, status, cmp, &cmp_value, true, call
#define ARGUMENTS_MANY ivars, nelems, status, cmp, cmp_values, false, call
#define DEFINE_SETS(A, N, T)                     \
  DEFINE_SET(N, T, , T cmp_value, ARGUMENTS_ONE) \
  DEFINE_SET(N, T, _vector, const T* cmp_values, ARGUMENTS_MANY)
#define DEFINE_WAIT(A, N, T)                                                             \
  SHMEM_TWIN(void, N##_wait, (T * ivar, T cmp_value)) {                                  \
    shmem_wait_slow_(ivar, type_of<T>(), SHMEM_CMP_NE, static_cast<uint64_t>(cmp_value), \
                     "shmem_" #N "_wait");                                               \
  }
#define DEFINE_SET(N, T, KIND, VALUES, ARGUMENTS)                                               \
  SHMEM_TWIN(void, N##_wait_until_all##KIND,                                                    \
             (T * ivars, size_t nelems, const int* status, int cmp, VALUES)) {                  \
    const char* const call = "shmem_" #N "_wait_until_all" #KIND;                               \
    wait_all(set_of(ARGUMENTS), call);                                                          \
  }                                                                                             \
  SHMEM_TWIN(size_t, N##_wait_until_any##KIND,                                                  \
             (T * ivars, size_t nelems, const int* status, int cmp, VALUES)) {                  \
    const char* const call = "shmem_" #N "_wait_until_any" #KIND;                               \
    return wait_any(set_of(ARGUMENTS), call);                                                   \
  }                                                                                             \
  SHMEM_TWIN(size_t, N##_wait_until_some##KIND,                                                 \
             (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp, VALUES)) { \
    const char* const call = "shmem_" #N "_wait_until_some" #KIND;                              \
    return wait_some(set_of(ARGUMENTS), indices, call);                                         \
  }                                                                                             \
  SHMEM_TWIN(int, N##_test_all##KIND,                                                           \
             (T * ivars, size_t nelems, const int* status, int cmp, VALUES)) {                  \
    const char* const call = "shmem_" #N "_test_all" #KIND;                                     \
    return test_all(set_of(ARGUMENTS), call);                                                   \
  }                                                                                             \
  SHMEM_TWIN(size_t, N##_test_any##KIND,                                                        \
             (T * ivars, size_t nelems, const int* status, int cmp, VALUES)) {                  \
    const char* const call = "shmem_" #N "_test_any" #KIND;                                     \
    return test_any(set_of(ARGUMENTS), call);                                                   \
  }                                                                                             \
  SHMEM_TWIN(size_t, N##_test_some##KIND,                                                       \
             (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp, VALUES)) { \
    const char* const call = "shmem_" #N "_test_some" #KIND;                                    \
    return test_some(set_of(ARGUMENTS), indices, call);                                         \
  }
SHMEM_LIST_AMO_(DEFINE_SETS, )
SHMEM_LIST_SHORT_WAITS_(DEFINE_SETS, )
SHMEM_LIST_AMO_(DEFINE_WAIT, )
#define DEFINE_SHORT(A, N, T)                                          \
  SHMEM_TWIN(void, N##_wait_until, (T * ivar, int cmp, T cmp_value)) { \
    wait_short(ivar, cmp, cmp_value, "shmem_" #N "_wait_until");       \
  }                                                                    \
  SHMEM_TWIN(int, N##_test, (T * ivar, int cmp, T cmp_value)) {        \
    return test_short(ivar, cmp, cmp_value, "shmem_" #N "_test");      \
  }                                                                    \
  SHMEM_TWIN(void, N##_wait, (T * ivar, T cmp_value)) {                \
    wait_short(ivar, SHMEM_CMP_NE, cmp_value, "shmem_" #N "_wait");    \
  }
SHMEM_LIST_SHORT_WAITS_(DEFINE_SHORT, )
