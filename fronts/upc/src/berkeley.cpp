// SPDX-License-Identifier: BSD-3-Clause

// What programs for Berkeley UPC use beyond the language, except copies of several pieces
// (vectors.cpp).

#include <bupc_extensions.h>
#include <errno.h>
#include <sched.h>
#include <upc.h>
#include <upc_castable.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "front.h"

namespace mobius::upc {
namespace {

struct alignas(64) Semaphore {
  uint64_t state;
  uint64_t value;
  uint64_t is_boolean;
};
constexpr uint64_t kLive = 0x6d6f6275706373e3;

struct Place {
  mob_rank_t rank;
  uint64_t* value;
  bool is_boolean;
};

Place find(mob_upc_ptr_t s, const char* call) {
  check_pointer(s, call, "the semaphore");
  Semaphore found = {};
  const auto rank = static_cast<mob_rank_t>(s.thread);
  // Read each time, on another host as well: that costs less than the wait that follows.
  if (mob_get(rank, remote(s), &found, sizeof found) != MOB_OK || found.state != kLive) {
    die(call, "the pointer names no semaphore of bupc_sem_alloc(), or a freed one");
  }
  return {rank, reinterpret_cast<uint64_t*>(remote(s) + offsetof(Semaphore, value)),
          found.is_boolean != 0};
}

// The semaphore, for adding `n`.
Place find_for(mob_upc_ptr_t s, size_t n, const char* call) {
  const Place place = find(s, call);
  if (place.is_boolean && n != 1) die(call, "a boolean semaphore takes 1, not %zu", n);
  return place;
}

void post(mob_upc_ptr_t s, size_t n, const char* call) {
  const Place place = find_for(s, n, call);
  check(mob_flush_all(), call);
  check(mob_put_signal(place.rank, nullptr, nullptr, 0, place.value, n,
                       place.is_boolean ? MOB_SIGNAL_SET : MOB_SIGNAL_ADD),
        call);
}

bool try_take(const Place& place, size_t n, const char* call) {
  uint64_t value = 0;
  check(mob_get8(place.rank, place.value, &value), call);
  while (value >= n) {
    uint64_t found = 0;
    check(mob_compare_swap8(place.rank, place.value, value, value - n, &found), call);
    if (found == value) return true;
    value = found;
  }
  return false;
}

void take(mob_upc_ptr_t s, size_t n, const char* call) {
  const Place place = find(s, call);
  check(mob_flush_all(), call);
  while (!try_take(place, n, call)) {
    if (mob_upc_is_mine(s)) {
      check(mob_wait_until_u8(place.value, MOB_GE, n), call);
    } else {
      check(mob_poll(), call);
      sched_yield();
    }
  }
}

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
Word<T> bits(T value) {
  Word<T> word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

template <typename T>
T value_of(Word<T> word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// A relaxed reference of one thread stays behind its earlier ones to the place.
char* at(mob_upc_ptr_t target, const char* call) {
  check_pointer(target, call, "target");
  if (mob_upc_bases_[target.thread] == nullptr) order_read(target, sizeof(uint64_t), call);
  return remote(target);
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

// Each update of a word of another thread, relaxed and strict, and of private memory. `WORDS` is 4
// or 8, the size of T.
#define DEFINE_UPDATE(T, WORDS, suffix, name, parameters, arguments, remote_call, local_call)      \
  static T suffix##_##name(mob_upc_ptr_t target, [[maybe_unused]] const char* call parameters) {   \
    Word<T> old = 0;                                                                               \
    char* const place = at(target, call);                                                          \
    [[maybe_unused]] const auto rank = static_cast<mob_rank_t>(target.thread);                     \
    check(remote_call, call);                                                                      \
    return value_of<T>(old);                                                                       \
  }                                                                                                \
  T bupc_atomic##suffix##_##name##_relaxed PARAMETERS_##name(mob_upc_ptr_t, T) {                   \
    return suffix##_##name(target, "bupc_atomic" #suffix "_" #name "_relaxed" arguments);          \
  }                                                                                                \
  T bupc_atomic##suffix##_##name##_strict PARAMETERS_##name(mob_upc_ptr_t, T) {                    \
    mob_upc_fence();                                                                               \
    const T before = suffix##_##name(target, "bupc_atomic" #suffix "_" #name "_strict" arguments); \
    mob_upc_fence();                                                                               \
    return before;                                                                                 \
  }                                                                                                \
  T bupc_atomic##suffix##_##name##_private PARAMETERS_##name(void*, T) {                           \
    auto* const place = static_cast<Word<T>*>(target);                                             \
    Word<T> old = 0;                                                                               \
    local_call;                                                                                    \
    return value_of<T>(old);                                                                       \
  }
#define PARAMETERS_read(P, T) (P target)
#define PARAMETERS_swap(P, T) (P target, T value)
#define PARAMETERS_cswap(P, T) (P target, T old_value, T new_value)
#define PARAMETERS_fetchadd(P, T) (P target, T value)
#define PARAMETERS_fetchand(P, T) (P target, T value)
#define PARAMETERS_fetchor(P, T) (P target, T value)
#define PARAMETERS_fetchxor(P, T) (P target, T value)
#define COMMA ,
#define DEFINE_WORDS(suffix, T, WORDS)                                                          \
  DEFINE_UPDATE(T, WORDS, suffix, read, , , mob_get##WORDS(rank, place, &old),                  \
                old = __atomic_load_n(place, __ATOMIC_SEQ_CST))                                 \
  DEFINE_UPDATE(T, WORDS, suffix, swap, COMMA T value, COMMA value,                             \
                mob_swap##WORDS(rank, place, bits(value), &old),                                \
                old = __atomic_exchange_n(place, bits(value), __ATOMIC_SEQ_CST))                \
  DEFINE_UPDATE(                                                                                \
      T, WORDS, suffix, cswap, COMMA T old_value COMMA T new_value,                             \
      COMMA old_value COMMA new_value,                                                          \
      mob_compare_swap##WORDS(rank, place, bits(old_value), bits(new_value), &old),             \
      (old = bits(old_value), __atomic_compare_exchange_n(place, &old, bits(new_value), false,  \
                                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))) \
  void bupc_atomic##suffix##_set_relaxed(mob_upc_ptr_t target, T value) {                       \
    static_cast<void>(bupc_atomic##suffix##_swap_relaxed(target, value));                       \
  }                                                                                             \
  void bupc_atomic##suffix##_set_strict(mob_upc_ptr_t target, T value) {                        \
    static_cast<void>(bupc_atomic##suffix##_swap_strict(target, value));                        \
  }                                                                                             \
  void bupc_atomic##suffix##_set_private(void* target, T value) {                               \
    static_cast<void>(bupc_atomic##suffix##_swap_private(target, value));                       \
  }
#define DEFINE_FETCH(suffix, T, WORDS, op)                               \
  DEFINE_UPDATE(T, WORDS, suffix, fetch##op, COMMA T value, COMMA value, \
                mob_fetch_##op##WORDS(rank, place, bits(value), &old),   \
                old = __atomic_fetch_##op(place, bits(value), __ATOMIC_SEQ_CST))
#define DEFINE_MODE(suffix, T, mode, P)                                         \
  T bupc_atomic##suffix##_fetchnot_##mode(P target) {                           \
    return bupc_atomic##suffix##_fetchxor_##mode(target, static_cast<T>(-1));   \
  }                                                                             \
  T bupc_atomic##suffix##_mswap_##mode(P target, T mask, T value) {             \
    T before = bupc_atomic##suffix##_read_##mode(target);                       \
    for (;;) {                                                                  \
      const T next = static_cast<T>((before & ~mask) | (value & mask));         \
      const T found = bupc_atomic##suffix##_cswap_##mode(target, before, next); \
      if (found == before) return before;                                       \
      before = found;                                                           \
    }                                                                           \
  }
#define DEFINE_NUMBERS(suffix, T, WORDS)         \
  DEFINE_WORDS(suffix, T, WORDS)                 \
  DEFINE_FETCH(suffix, T, WORDS, add)            \
  DEFINE_FETCH(suffix, T, WORDS, and)            \
  DEFINE_FETCH(suffix, T, WORDS, or)             \
  DEFINE_FETCH(suffix, T, WORDS, xor)            \
  DEFINE_MODE(suffix, T, relaxed, mob_upc_ptr_t) \
  DEFINE_MODE(suffix, T, strict, mob_upc_ptr_t)  \
  DEFINE_MODE(suffix, T, private, void*)

extern "C" {

DEFINE_NUMBERS(I, int, 4)
DEFINE_NUMBERS(UI, unsigned int, 4)
DEFINE_NUMBERS(L, long, 8)
DEFINE_NUMBERS(UL, unsigned long, 8)
DEFINE_NUMBERS(I64, int64_t, 8)
DEFINE_NUMBERS(U64, uint64_t, 8)
DEFINE_NUMBERS(I32, int32_t, 4)
DEFINE_NUMBERS(U32, uint32_t, 4)
DEFINE_WORDS(F, float, 4)
DEFINE_WORDS(D, double, 8)

void bupc_poll(void) {
  mob_upc_fence();
  check(mob_poll(), "bupc_poll");
}
void upc_poll(void) { bupc_poll(); }

char* bupc_getenv(const char* name) { return std::getenv(name); }

int bupc_dump_shared(mob_upc_ptr_t ptr, char* buffer, int length) {
  if (buffer == nullptr || length < BUPC_DUMP_MIN_LENGTH) {
    errno = EINVAL;
    return -1;
  }
  std::snprintf(buffer, static_cast<size_t>(length),
                "<address=0x%zx (offset 0x%llx), thread=%u, phase=%u>", mob_upc_addrfield(ptr),
                static_cast<unsigned long long>(ptr.offset), ptr.thread, ptr.phase);
  return 0;
}

void* bupc_cast(mob_upc_ptr_t ptr) { return upc_cast(ptr); }
int bupc_castable(mob_upc_ptr_t ptr) {
  return mob_upc_is_null(ptr) || upc_cast(ptr) != nullptr ? 1 : 0;
}
int bupc_thread_castable(unsigned int thread) {
  return upc_thread_info(thread).guaranteedCastable == UPC_CASTABLE_ALL ? 1 : 0;
}

mob_upc_ptr_t bupc_inverse_cast(void* ptr) {
  for (int i = 0; ptr != nullptr && i < threads(); ++i) {
    const char* const base = mob_upc_bases_[i];
    if (base == nullptr) continue;
    const mob_upc_ptr_t found = mob_upc_pointer(
        static_cast<uint64_t>(static_cast<const char*>(ptr) - base), static_cast<uint32_t>(i), 0);
    if (found.offset < area_bytes()) return found;
    // A block of upc_alloc(): Möbius knows whose it is.
    void* here = nullptr;
    if (mob_ptr(i, remote(found), &here) == MOB_OK && here == ptr) return found;
  }
  return mob_upc_null();
}

mob_upc_ptr_t bupc_local_to_shared(void* ptr, int thread, int phase) {
  constexpr const char* kCall = "bupc_local_to_shared";
  check_started(kCall);
  if (ptr == nullptr) return mob_upc_null();
  if (thread < 0 || thread >= threads()) {
    die(kCall, "thread is %d; there are threads 0 to %d", thread, threads() - 1);
  }
  return mob_upc_pointer(static_cast<uint64_t>(static_cast<char*>(ptr) - mob_upc_mine_),
                         static_cast<uint32_t>(thread), static_cast<uint32_t>(phase));
}

mob_upc_ptr_t bupc_ptradd(mob_upc_ptr_t p, size_t block, size_t bytes, ptrdiff_t increment) {
  return block == 0   ? mob_upc_add_indefinite(p, increment, bytes)
         : block == 1 ? mob_upc_add_cyclic(p, increment, bytes)
                      : mob_upc_add_blocked(p, increment, bytes, block);
}

unsigned int bupc_thread_distance(int thread_x, int thread_y) {
  constexpr const char* kCall = "bupc_thread_distance";
  check_started(kCall);
  for (const int thread : {thread_x, thread_y}) {
    if (thread < 0 || thread >= threads()) {
      die(kCall, "thread is %d; there are threads 0 to %d", thread, threads() - 1);
    }
  }
  if (thread_x == thread_y) return BUPC_THREADS_SAME;
  return host_of(thread_x) == host_of(thread_y) ? BUPC_THREADS_VERYNEAR : BUPC_THREADS_VERYFAR;
}

void bupc_all_free(mob_upc_ptr_t ptr) { upc_all_free(ptr); }
void bupc_all_lock_free(mob_upc_ptr_t ptr) { upc_all_lock_free(ptr); }

mob_upc_ptr_t bupc_sem_alloc(int flags) {
  constexpr const char* kCall = "bupc_sem_alloc";
  const auto both = [&](int mask) { return (flags & mask) == mask; };
  if ((flags & ~BUPC_SEM_MASK) != 0 || both(BUPC_SEM_BOOLEAN | BUPC_SEM_INTEGER) ||
      both(BUPC_SEM_SPRODUCER | BUPC_SEM_MPRODUCER) ||
      both(BUPC_SEM_SCONSUMER | BUPC_SEM_MCONSUMER)) {
    die(kCall, "flags 0x%x: give at most one of each pair of BUPC_SEM_*", flags);
  }
  const mob_upc_ptr_t made = upc_alloc(sizeof(Semaphore));
  if (mob_upc_is_null(made)) die(kCall, "no memory for a semaphore");
  auto* const semaphore = static_cast<Semaphore*>(mob_upc_local(made.offset));
  *semaphore = {kLive, 0, (flags & BUPC_SEM_BOOLEAN) != 0 ? uint64_t{1} : 0};
  return made;
}

void bupc_sem_free(mob_upc_ptr_t s) {
  constexpr const char* kCall = "bupc_sem_free";
  if (mob_upc_is_null(s)) return;
  static_cast<void>(find(s, kCall));
  check(mob_put8(static_cast<mob_rank_t>(s.thread), remote(s), 0), kCall);
  upc_free(s);
}

void bupc_sem_post(mob_upc_ptr_t s) { post(s, 1, "bupc_sem_post"); }
void bupc_sem_postN(mob_upc_ptr_t s, size_t n) { post(s, n, "bupc_sem_postN"); }
void bupc_sem_wait(mob_upc_ptr_t s) { take(s, 1, "bupc_sem_wait"); }
void bupc_sem_waitN(mob_upc_ptr_t s, size_t n) { take(s, n, "bupc_sem_waitN"); }
int bupc_sem_try(mob_upc_ptr_t s) { return bupc_sem_tryN(s, 1); }
int bupc_sem_tryN(mob_upc_ptr_t s, size_t n) {
  constexpr const char* kCall = "bupc_sem_tryN";
  check(mob_flush_all(), kCall);
  return try_take(find(s, kCall), n, kCall) ? 1 : 0;
}

void bupc_memput_signal(mob_upc_ptr_t dst, const void* src, size_t bytes, mob_upc_ptr_t s,
                        size_t n) {
  constexpr const char* kCall = "bupc_memput_signal";
  const Place place = find_for(s, n, kCall);
  if (bytes != 0) check_pointer(dst, kCall, "dst");
  if (bytes != 0 && dst.thread != s.thread) {
    die(kCall, "dst has affinity to thread %u, the semaphore to thread %u: both must have one",
        dst.thread, s.thread);
  }
  if (bytes != 0 && mob_upc_bases_[dst.thread] == nullptr) order_write(dst, bytes, kCall);
  check(mob_put_signal(place.rank, bytes != 0 ? remote(dst) : nullptr, src, bytes, place.value, n,
                       place.is_boolean ? MOB_SIGNAL_SET : MOB_SIGNAL_ADD),
        kCall);
}
void bupc_memput_signal_async(mob_upc_ptr_t dst, const void* src, size_t bytes, mob_upc_ptr_t s,
                              size_t n) {
  bupc_memput_signal(dst, src, bytes, s, n);
}

void bupc_waitsync_all(upc_handle_t* handles, size_t count) {
  check(mob_wait_all(handles, count), "bupc_waitsync_all");
}

int bupc_trysync_all(upc_handle_t* handles, size_t count) {
  int all = 1;
  for (size_t i = 0; i < count; ++i) {
    int done = 0;
    check(mob_test(&handles[i], &done), "bupc_trysync_all");
    all &= done;
  }
  return all;
}

void bupc_waitsync_some(upc_handle_t* handles, size_t count) {
  if (bupc_trysync_some(handles, count) != 0) return;
  size_t index = 0;
  check(mob_wait_any(handles, count, &index), "bupc_waitsync_some");
}

int bupc_trysync_some(upc_handle_t* handles, size_t count) {
  int some = 0;
  bool is_any = false;
  for (size_t i = 0; i < count; ++i) {
    if (handles[i] == UPC_COMPLETE_HANDLE) continue;
    is_any = true;
    int done = 0;
    check(mob_test(&handles[i], &done), "bupc_trysync_some");
    some |= done;
  }
  return is_any ? some : 1;
}

void bupc_begin_accessregion(void) {}
upc_handle_t bupc_end_accessregion(void) {
  upc_synci();
  return UPC_COMPLETE_HANDLE;
}

void bupc_trace_setmask(const char*) {}
void bupc_stats_setmask(const char*) {}
const char* bupc_trace_getmask(void) { return ""; }
const char* bupc_stats_getmask(void) { return ""; }
int bupc_trace_gettracelocal(void) { return 0; }
void bupc_trace_settracelocal(int) {}

}  // extern "C"
