/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic domains, copies that go on meanwhile, and casts to others' memory. */
#include <upc.h>
#include <upc_atomic.h>
#include <upc_castable.h>
#include <upc_nb.h>

#include "upc_tests.h"

/* shared 16 bytes words[THREADS * 2]; */
static uint64_t words;
static const mob_upc_object_t objects[] = {
    {"words", &words, 16, 1, 2, MOB_UPC_TIMES_THREADS, 16, NULL, 0, HERE},
};
REGISTER(objects, NULL)

static mob_upc_ptr_t word_of(int thread) { return mob_upc_pointer(words, (uint32_t)thread, 0); }

/* One thread updates another's element in every way, and looks at each result. */
#define EACH_OPERATION(code, T, is_integer)                                                 \
  do {                                                                                      \
    upc_op_t ops = UPC_GET | UPC_SET | UPC_CSWAP | UPC_ADD | UPC_SUB | UPC_MULT | UPC_INC | \
                   UPC_DEC | UPC_MIN | UPC_MAX;                                             \
    mob_upc_ptr_t d, at = word_of(THREADS - 1);                                             \
    T got = 0, a, b;                                                                        \
    if (is_integer) ops |= UPC_AND | UPC_OR | UPC_XOR;                                      \
    d = upc_all_atomicdomain_alloc(code, ops, UPC_ATOMIC_HINT_DEFAULT);                     \
    if (MYTHREAD == 0) {                                                                    \
      STEP(T, UPC_SET, 7, NONE, got == got, 7)                                              \
      STEP(T, UPC_ADD, 5, NONE, got == 7, 12)                                               \
      STEP(T, UPC_SUB, 2, NONE, got == 12, 10)                                              \
      STEP(T, UPC_MULT, 3, NONE, got == 10, 30)                                             \
      STEP(T, UPC_MIN, 40, NONE, got == 30, 30)                                             \
      STEP(T, UPC_MIN, 20, NONE, got == 30, 20)                                             \
      STEP(T, UPC_MAX, 9, NONE, got == 20, 20)                                              \
      STEP(T, UPC_MAX, 33, NONE, got == 20, 33)                                             \
      STEP(T, UPC_CSWAP, 32, 50, got == 33, 33)                                             \
      STEP(T, UPC_CSWAP, 33, 50, got == 33, 50)                                             \
      STEP(T, UPC_INC, NONE, NONE, got == 50, 51)                                           \
      STEP(T, UPC_DEC, NONE, NONE, got == 51, 50)                                           \
      if (is_integer) {                                                                     \
        STEP(T, UPC_AND, 35, NONE, got == 50, 34)                                           \
        STEP(T, UPC_OR, 5, NONE, got == 34, 39)                                             \
        STEP(T, UPC_XOR, 1, NONE, got == 39, 38)                                            \
      }                                                                                     \
      a = 0;                                                                                \
      upc_atomic_strict(d, NULL, UPC_SET, at, &a, NULL);                                    \
    }                                                                                       \
    mob_upc_barrier(HERE);                                                                  \
    a = 3;                                                                                  \
    upc_atomic_relaxed(d, NULL, UPC_ADD, at, &a, NULL);                                     \
    a = 1;                                                                                  \
    upc_atomic_strict(d, NULL, UPC_SUB, at, &a, NULL);                                      \
    mob_upc_barrier(HERE);                                                                  \
    upc_atomic_relaxed(d, &got, UPC_GET, at, NULL, NULL);                                   \
    CHECK(got == (T)(2 * THREADS));                                                         \
    b = 0;                                                                                  \
    (void)b;                                                                                \
    upc_all_atomicdomain_free(d);                                                           \
  } while (0)
#define NONE (-1)
#define STEP(T, op, first, other, before, after)                                                 \
  a = (T)(first);                                                                                \
  b = (T)(other);                                                                                \
  upc_atomic_relaxed(d, &got, op, at, (first) == NONE ? NULL : &a, (other) == NONE ? NULL : &b); \
  CHECK(before);                                                                                 \
  upc_atomic_strict(d, &got, UPC_GET, at, NULL, NULL);                                           \
  CHECK(got == (T)(after));

static void pointers(void) {
  mob_upc_ptr_t d = upc_all_atomicdomain_alloc(UPC_PTS, UPC_GET | UPC_SET | UPC_CSWAP, 0);
  mob_upc_ptr_t at = word_of(THREADS - 1), got, none = mob_upc_null();
  mob_upc_ptr_t a = mob_upc_pointer(words, 0, 3), b = mob_upc_pointer(words, 0, 2);
  mob_upc_ptr_t mine = mob_upc_pointer(words + 16, (uint32_t)MYTHREAD, 0);
  int i;
  CHECK(upc_atomic_isfast(UPC_PTS, UPC_GET, at) == 0);
  if (MYTHREAD == 0) {
    upc_atomic_relaxed(d, NULL, UPC_SET, at, &a, NULL);
    upc_atomic_relaxed(d, &got, UPC_GET, at, NULL, NULL);
    CHECK(mob_upc_equal(got, a) && got.phase == 3);
    upc_atomic_relaxed(d, &got, UPC_CSWAP, at, &b, &none); /* equal, with another phase */
    CHECK(mob_upc_equal(got, a));
  }
  mob_upc_barrier(HERE);
  /* Each pushes and pops itself: a list of one word. */
  for (i = 0; i < 20; ++i) {
    for (;;) {
      upc_atomic_relaxed(d, &got, UPC_CSWAP, at, &none, &mine);
      if (mob_upc_is_null(got)) break;
    }
    upc_atomic_strict(d, &got, UPC_GET, at, NULL, NULL);
    CHECK(mob_upc_equal(got, mine));
    upc_atomic_strict(d, &got, UPC_CSWAP, at, &mine, &none);
    CHECK(mob_upc_equal(got, mine));
  }
  upc_all_atomicdomain_free(d);
}

static void nonblocking(void) {
  enum { kBytes = 50000 };
  static char out[kBytes], in[kBytes];
  const uint32_t right = (uint32_t)((MYTHREAD + 1) % THREADS);
  mob_upc_ptr_t all = upc_all_alloc((size_t)THREADS, 3 * kBytes);
  mob_upc_ptr_t there = mob_upc_pointer(all.offset, right, 0);
  upc_handle_t handle;
  memset(out, MYTHREAD + 1, sizeof out);
  upc_sync(upc_memput_nb(there, out, sizeof out));
  upc_sync(upc_memget_nb(in, there, sizeof in));
  CHECK(memcmp(in, out, sizeof in) == 0);
  handle = upc_memcpy_nb(mob_upc_member(there, kBytes), there, kBytes);
  while (!upc_sync_attempt(handle)) {
  }
  upc_sync(upc_memset_nb(mob_upc_member(there, 2 * kBytes), MYTHREAD + 9, kBytes));
  upc_sync(UPC_COMPLETE_HANDLE);
  CHECK(upc_sync_attempt(UPC_COMPLETE_HANDLE));
  mob_upc_barrier(HERE);
  {
    const char* mine = mob_upc_local(all.offset);
    const int left = (MYTHREAD + THREADS - 1) % THREADS;
    CHECK(mine[0] == left + 1 && mine[2 * kBytes - 1] == left + 1);
    CHECK(mine[2 * kBytes] == left + 9 && mine[3 * kBytes - 1] == left + 9);
  }
  mob_upc_barrier(HERE);
  memset(out, MYTHREAD + 50, sizeof out);
  upc_memput_nbi(there, out, sizeof out);
  upc_synci();
  memset(in, 0, sizeof in);
  upc_memget_nbi(in, there, sizeof in);
  upc_memcpy_nbi(mob_upc_member(there, kBytes), there, kBytes);
  upc_memset_nbi(mob_upc_member(there, 2 * kBytes), 77, kBytes);
  while (!upc_synci_attempt()) {
  }
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK(mob_upc_get_char(mob_upc_member(there, 2 * kBytes)) == 77);
  CHECK(mob_upc_get_char(mob_upc_member(there, kBytes + 5)) == MYTHREAD + 50);
  upc_all_free(all);
}

static void casts(void) {
  int i;
  mob_upc_ptr_t block = upc_alloc(5000000);
  memset(mob_upc_to_private(block), MYTHREAD + 1, 5000000);
  mob_upc_put_shared(word_of(MYTHREAD), block);
  mob_upc_barrier(HERE);
  CHECK(upc_cast(mob_upc_null()) == NULL);
  for (i = 0; i < THREADS; ++i) {
    mob_upc_ptr_t theirs = mob_upc_get_shared(word_of(i));
    const char* here = upc_cast(theirs);
    upc_thread_info_t info = upc_thread_info((size_t)i);
    CHECK((here != NULL) == (info.guaranteedCastable == UPC_CASTABLE_ALL));
    CHECK((here != NULL) == (upc_cast(word_of(i)) != NULL));
    CHECK(i != MYTHREAD || here != NULL);
    if (here != NULL) CHECK(here[4999999] == i + 1);
  }
  CHECK(upc_thread_info((size_t)THREADS).probablyCastable == 0);
  mob_upc_barrier(HERE);
  upc_free(block);
}

MOB_UPC_API int mob_upc_main(void);
int mob_upc_main(void) {
  EACH_OPERATION(UPC_INT, int, 1);
  EACH_OPERATION(UPC_UINT, unsigned, 1);
  EACH_OPERATION(UPC_LONG, long, 1);
  EACH_OPERATION(UPC_ULONG, unsigned long, 1);
  EACH_OPERATION(UPC_INT32, int32_t, 1);
  EACH_OPERATION(UPC_UINT32, uint32_t, 1);
  EACH_OPERATION(UPC_INT64, int64_t, 1);
  EACH_OPERATION(UPC_UINT64, uint64_t, 1);
  EACH_OPERATION(UPC_FLOAT, float, 0);
  EACH_OPERATION(UPC_DOUBLE, double, 0);
  CHECK(upc_atomic_isfast(UPC_INT, UPC_ADD, mob_upc_null()) == 1);
  CHECK(upc_atomic_isfast(UPC_DOUBLE, UPC_XOR, mob_upc_null()) == 0);
  pointers();
  nonblocking();
  casts();
  return 0;
}
