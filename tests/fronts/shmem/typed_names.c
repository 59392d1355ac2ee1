/* SPDX-License-Identifier: BSD-3-Clause */

/* Every function with a type or a size in its name, with and without a context: each PE works on
 * objects of its right neighbour, in the heap and in static memory. */

#include "check.h"
#include "standard_types.h"

enum { kCount = 12 };

static int me;
static int right;
static int left;
static shmem_ctx_t ctx;

/* The object that a test works on, once in the heap and once static. */
static void* block;
static union {
  char bytes[2 * kCount * 16];
  long double aligned;
} fixed;
static uint64_t fixed_signal;
static uint64_t* heap_signal;

static void clear(void* object) {
  shmem_barrier_all();
  memset(object, 0, sizeof fixed);
  fixed_signal = 0;
  *heap_signal = 0;
  shmem_barrier_all();
}

/* Completes what both contexts have started: nothing else orders it. */
static void settle(void) {
  shmem_ctx_quiet(ctx);
  shmem_quiet();
}

/* Runs a test on both objects. */
#define ON_BOTH(test)            \
  do {                           \
    clear(block);                \
    test(block, heap_signal);    \
    clear(&fixed);               \
    test(&fixed, &fixed_signal); \
  } while (0)

/* Put, get and their relatives. `V(i, pe)` is a value that tells element and PE. */
#define V(T, i, pe) ((T)((i) + 3 * (pe) + 1))
#define DEFINE_RMA_TEST(A, N, T)                                                                \
  static void test_rma_##N(void* object, uint64_t* signal) {                                    \
    T* const dest = (T*)object;                                                                 \
    T source[2 * kCount];                                                                       \
    T back[2 * kCount];                                                                         \
    size_t i;                                                                                   \
    for (i = 0; i < 2 * kCount; ++i) source[i] = V(T, i, me);                                   \
    memset(back, 0, sizeof back);                                                               \
    shmem_##N##_p(&dest[0], V(T, 0, me), right);                                                \
    shmem_ctx_##N##_p(ctx, &dest[1], V(T, 1, me), right);                                       \
    shmem_##N##_put(&dest[2], &source[2], 2, right);                                            \
    shmem_ctx_##N##_put(ctx, &dest[4], &source[4], 1, right);                                   \
    shmem_##N##_put_nbi(&dest[5], &source[5], 1, right);                                        \
    shmem_ctx_##N##_put_nbi(ctx, &dest[6], &source[6], 2, right);                               \
    shmem_##N##_iput(&dest[8], &source[8], 2, 2, 2, right);                                     \
    shmem_ctx_##N##_iput(ctx, &dest[9], &source[9], 2, 2, 2, right);                            \
    shmem_##N##_ibput(&dest[12], &source[12], 4, 4, 2, 2, right);                               \
    shmem_ctx_##N##_ibput(ctx, &dest[14], &source[14], 4, 4, 2, 2, right);                      \
    shmem_##N##_put_signal(&dest[20], &source[20], 1, signal, 5, SHMEM_SIGNAL_SET, right);      \
    shmem_fence();                                                                              \
    shmem_ctx_##N##_put_signal(ctx, &dest[21], &source[21], 1, signal, 2, SHMEM_SIGNAL_ADD,     \
                               right);                                                          \
    shmem_ctx_fence(ctx);                                                                       \
    shmem_##N##_put_signal_nbi(&dest[22], &source[22], 1, signal, 3, SHMEM_SIGNAL_ADD, right);  \
    shmem_ctx_##N##_put_signal_nbi(ctx, &dest[23], &source[23], 1, signal, 4, SHMEM_SIGNAL_ADD, \
                                   right);                                                      \
    settle();                                                                                   \
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 14) == 14);                             \
    shmem_barrier_all();                                                                        \
    CHECK(shmem_signal_fetch(signal) == 14);                                                    \
    for (i = 0; i < 2 * kCount; ++i) CHECK(dest[i] == V(T, i, left));                           \
    CHECK(shmem_##N##_g(&dest[0], right) == V(T, 0, me));                                       \
    CHECK(shmem_ctx_##N##_g(ctx, &dest[1], right) == V(T, 1, me));                              \
    shmem_##N##_get(&back[0], &dest[0], 3, right);                                              \
    shmem_ctx_##N##_get(ctx, &back[3], &dest[3], 1, right);                                     \
    shmem_##N##_get_nbi(&back[4], &dest[4], 1, right);                                          \
    shmem_ctx_##N##_get_nbi(ctx, &back[5], &dest[5], 3, right);                                 \
    shmem_##N##_iget(&back[8], &dest[8], 2, 2, 2, right);                                       \
    shmem_ctx_##N##_iget(ctx, &back[9], &dest[9], 2, 2, 2, right);                              \
    shmem_##N##_ibget(&back[12], &dest[12], 4, 4, 2, 3, right);                                 \
    shmem_ctx_##N##_ibget(ctx, &back[14], &dest[14], 4, 4, 2, 3, right);                        \
    settle();                                                                                   \
    for (i = 0; i < 2 * kCount; ++i) CHECK(back[i] == V(T, i, me));                             \
  }
ALL_REALS(DEFINE_RMA_TEST, )
ALL_INTEGERS(DEFINE_RMA_TEST, )
ALL_SIZED(DEFINE_RMA_TEST, )

/* The same with sizes for types; `S(i)` is the address of an element. */
#define DEFINE_SIZE_TEST(A, BITS, BYTES) DEFINE_BLOCK_TEST(BITS, BYTES, put##BITS, get##BITS)
#define DEFINE_BLOCK_TEST(N, BYTES, PUT, GET)                                                      \
  static void test_size_##N(void* object, uint64_t* signal) {                                      \
    char* const dest = (char*)object;                                                              \
    char source[9 * BYTES];                                                                        \
    char back[9 * BYTES];                                                                          \
    size_t i;                                                                                      \
    for (i = 0; i < sizeof source; ++i) source[i] = (char)(i + 5 * (size_t)me);                    \
    memset(back, 0, sizeof back);                                                                  \
    shmem_##PUT(dest, source, 1, right);                                                           \
    shmem_ctx_##PUT(ctx, dest + BYTES, source + BYTES, 1, right);                                  \
    shmem_##PUT##_nbi(dest + 2 * BYTES, source + 2 * BYTES, 2, right);                             \
    shmem_ctx_##PUT##_nbi(ctx, dest + 4 * BYTES, source + 4 * BYTES, 1, right);                    \
    shmem_##PUT##_signal(dest + 5 * BYTES, source + 5 * BYTES, 1, signal, 1, SHMEM_SIGNAL_ADD,     \
                         right);                                                                   \
    shmem_##PUT##_signal_nbi(dest + 6 * BYTES, source + 6 * BYTES, 1, signal, 1, SHMEM_SIGNAL_ADD, \
                             right);                                                               \
    shmem_ctx_##PUT##_signal(ctx, dest + 7 * BYTES, source + 7 * BYTES, 1, signal, 1,              \
                             SHMEM_SIGNAL_ADD, right);                                             \
    shmem_ctx_##PUT##_signal_nbi(ctx, dest + 8 * BYTES, source + 8 * BYTES, 1, signal, 1,          \
                                 SHMEM_SIGNAL_ADD, right);                                         \
    shmem_ctx_quiet(ctx);                                                                          \
    shmem_barrier_all();                                                                           \
    CHECK(*signal == 4);                                                                           \
    for (i = 0; i < sizeof source; ++i) CHECK(dest[i] == (char)(i + 5 * (size_t)left));            \
    shmem_##GET(back, dest, 1, right);                                                             \
    shmem_ctx_##GET(ctx, back + BYTES, dest + BYTES, 1, right);                                    \
    shmem_##GET##_nbi(back + 2 * BYTES, dest + 2 * BYTES, 2, right);                               \
    shmem_ctx_##GET##_nbi(ctx, back + 4 * BYTES, dest + 4 * BYTES, 5, right);                      \
    settle();                                                                                      \
    CHECK(memcmp(back, source, sizeof source) == 0);                                               \
  }
ALL_SIZES(DEFINE_SIZE_TEST, )
DEFINE_BLOCK_TEST(mem, 1, putmem, getmem)

#define DEFINE_STRIDED_SIZE_TEST(A, BITS, BYTES)                                         \
  static void test_strided_##BITS(void* object, uint64_t* signal) {                      \
    char* const dest = (char*)object;                                                    \
    char source[8 * BYTES];                                                              \
    char back[8 * BYTES];                                                                \
    size_t i;                                                                            \
    (void)signal;                                                                        \
    for (i = 0; i < sizeof source; ++i) source[i] = (char)(i + 7 * (size_t)me);          \
    memset(back, 0, sizeof back);                                                        \
    shmem_iput##BITS(dest, source, 2, 2, 2, right);                                      \
    shmem_ctx_iput##BITS(ctx, dest + BYTES, source + BYTES, 2, 2, 2, right);             \
    shmem_ibput##BITS(dest + 4 * BYTES, source + 4 * BYTES, 2, 2, 2, 1, right);          \
    shmem_ctx_ibput##BITS(ctx, dest + 6 * BYTES, source + 6 * BYTES, 2, 2, 2, 1, right); \
    shmem_ctx_quiet(ctx);                                                                \
    shmem_barrier_all();                                                                 \
    for (i = 0; i < sizeof source; ++i) CHECK(dest[i] == (char)(i + 7 * (size_t)left));  \
    shmem_iget##BITS(back, dest, 2, 2, 2, right);                                        \
    shmem_ctx_iget##BITS(ctx, back + BYTES, dest + BYTES, 2, 2, 2, right);               \
    shmem_ibget##BITS(back + 4 * BYTES, dest + 4 * BYTES, 2, 2, 2, 1, right);            \
    shmem_ctx_ibget##BITS(ctx, back + 6 * BYTES, dest + 6 * BYTES, 2, 2, 2, 1, right);   \
    CHECK(memcmp(back, source, sizeof source) == 0);                                     \
  }
ALL_SIZES(DEFINE_STRIDED_SIZE_TEST, )

/* Atomic operations; only the left neighbour works on a PE's object. */
#define DEFINE_EXTENDED_TEST(A, N, T)                                   \
  static void test_extended_##N(void* object, uint64_t* signal) {       \
    T* const dest = (T*)object;                                         \
    T old = (T)99;                                                      \
    (void)signal;                                                       \
    shmem_##N##_atomic_set(dest, (T)3, right);                          \
    settle();                                                           \
    CHECK(shmem_##N##_atomic_fetch(dest, right) == (T)3);               \
    shmem_ctx_##N##_atomic_set(ctx, dest, (T)4, right);                 \
    settle();                                                           \
    CHECK(shmem_ctx_##N##_atomic_fetch(ctx, dest, right) == (T)4);      \
    CHECK(shmem_##N##_atomic_swap(dest, (T)5, right) == (T)4);          \
    CHECK(shmem_ctx_##N##_atomic_swap(ctx, dest, (T)6, right) == (T)5); \
    shmem_##N##_atomic_swap_nbi(&old, dest, (T)7, right);               \
    shmem_quiet();                                                      \
    CHECK(old == (T)6);                                                 \
    shmem_ctx_##N##_atomic_swap_nbi(ctx, &old, dest, (T)8, right);      \
    shmem_ctx_quiet(ctx);                                               \
    CHECK(old == (T)7);                                                 \
    shmem_##N##_atomic_fetch_nbi(&old, dest, right);                    \
    shmem_quiet();                                                      \
    CHECK(old == (T)8);                                                 \
    shmem_##N##_set(dest, (T)9, right);                                 \
    settle();                                                           \
    CHECK(shmem_##N##_swap(dest, (T)10, right) == (T)9);                \
    CHECK(shmem_##N##_fetch(dest, right) == (T)10);                     \
    shmem_ctx_##N##_atomic_fetch_nbi(ctx, &old, dest, right);           \
    shmem_ctx_quiet(ctx);                                               \
    CHECK(old == (T)10);                                                \
    shmem_barrier_all();                                                \
    CHECK(*dest == (T)10);                                              \
  }
#define DEFINE_AMO_TEST(A, N, T)                                                         \
  DEFINE_EXTENDED_TEST(A, N, T)                                                          \
  static void test_amo_##N(void* object, uint64_t* signal) {                             \
    T* const dest = (T*)object;                                                          \
    T old = (T)99;                                                                       \
    (void)signal;                                                                        \
    shmem_##N##_atomic_inc(dest, right);                                                 \
    shmem_ctx_##N##_atomic_inc(ctx, dest, right);                                        \
    shmem_##N##_atomic_add(dest, (T)3, right);                                           \
    shmem_ctx_##N##_atomic_add(ctx, dest, (T)4, right);                                  \
    shmem_##N##_add(dest, (T)5, right);                                                  \
    shmem_##N##_inc(dest, right);                                                        \
    settle();                                                                            \
    CHECK(shmem_##N##_atomic_fetch_inc(dest, right) == (T)15);                           \
    CHECK(shmem_ctx_##N##_atomic_fetch_inc(ctx, dest, right) == (T)16);                  \
    CHECK(shmem_##N##_atomic_fetch_add(dest, (T)3, right) == (T)17);                     \
    CHECK(shmem_ctx_##N##_atomic_fetch_add(ctx, dest, (T) - 1, right) == (T)20);         \
    CHECK(shmem_##N##_finc(dest, right) == (T)19);                                       \
    CHECK(shmem_##N##_fadd(dest, (T)2, right) == (T)20);                                 \
    CHECK(shmem_##N##_atomic_compare_swap(dest, (T)1, (T)2, right) == (T)22);            \
    CHECK(shmem_##N##_atomic_compare_swap(dest, (T)22, (T)30, right) == (T)22);          \
    CHECK(shmem_ctx_##N##_atomic_compare_swap(ctx, dest, (T)30, (T)31, right) == (T)30); \
    CHECK(shmem_##N##_cswap(dest, (T)31, (T)32, right) == (T)31);                        \
    shmem_##N##_atomic_fetch_inc_nbi(&old, dest, right);                                 \
    shmem_quiet();                                                                       \
    CHECK(old == (T)32);                                                                 \
    shmem_ctx_##N##_atomic_fetch_inc_nbi(ctx, &old, dest, right);                        \
    shmem_ctx_quiet(ctx);                                                                \
    CHECK(old == (T)33);                                                                 \
    shmem_##N##_atomic_fetch_add_nbi(&old, dest, (T)6, right);                           \
    shmem_quiet();                                                                       \
    CHECK(old == (T)34);                                                                 \
    shmem_ctx_##N##_atomic_fetch_add_nbi(ctx, &old, dest, (T)10, right);                 \
    shmem_ctx_quiet(ctx);                                                                \
    CHECK(old == (T)40);                                                                 \
    shmem_##N##_atomic_compare_swap_nbi(&old, dest, (T)50, (T)60, right);                \
    shmem_quiet();                                                                       \
    CHECK(old == (T)50);                                                                 \
    shmem_ctx_##N##_atomic_compare_swap_nbi(ctx, &old, dest, (T)0, (T)70, right);        \
    shmem_ctx_quiet(ctx);                                                                \
    CHECK(old == (T)60);                                                                 \
    shmem_barrier_all();                                                                 \
    CHECK(*dest == (T)60);                                                               \
  }
#define DEFINE_BITS_TEST(A, N, T)                                                  \
  static void test_bits_##N(void* object, uint64_t* signal) {                      \
    T* const dest = (T*)object;                                                    \
    T old = (T)99;                                                                 \
    (void)signal;                                                                  \
    shmem_##N##_atomic_or(dest, (T)0xf0, right);                                   \
    settle();                                                                      \
    shmem_ctx_##N##_atomic_or(ctx, dest, (T)0x0f, right);                          \
    settle();                                                                      \
    shmem_##N##_atomic_and(dest, (T)0xfe, right);                                  \
    settle();                                                                      \
    shmem_ctx_##N##_atomic_and(ctx, dest, (T)0x7f, right);                         \
    settle();                                                                      \
    shmem_##N##_atomic_xor(dest, (T)0x81, right);                                  \
    settle();                                                                      \
    shmem_ctx_##N##_atomic_xor(ctx, dest, (T)0x80, right);                         \
    settle();                                                                      \
    CHECK(shmem_##N##_atomic_fetch_and(dest, (T)0x3f, right) == (T)0x7f);          \
    CHECK(shmem_ctx_##N##_atomic_fetch_and(ctx, dest, (T)0x1f, right) == (T)0x3f); \
    CHECK(shmem_##N##_atomic_fetch_or(dest, (T)0x40, right) == (T)0x1f);           \
    CHECK(shmem_ctx_##N##_atomic_fetch_or(ctx, dest, (T)0x20, right) == (T)0x5f);  \
    CHECK(shmem_##N##_atomic_fetch_xor(dest, (T)0x01, right) == (T)0x7f);          \
    CHECK(shmem_ctx_##N##_atomic_fetch_xor(ctx, dest, (T)0x02, right) == (T)0x7e); \
    shmem_##N##_atomic_fetch_and_nbi(&old, dest, (T)0x0f, right);                  \
    shmem_quiet();                                                                 \
    CHECK(old == (T)0x7c);                                                         \
    shmem_ctx_##N##_atomic_fetch_or_nbi(ctx, &old, dest, (T)0x10, right);          \
    shmem_ctx_quiet(ctx);                                                          \
    CHECK(old == (T)0x0c);                                                         \
    shmem_##N##_atomic_fetch_xor_nbi(&old, dest, (T)0x1c, right);                  \
    shmem_quiet();                                                                 \
    CHECK(old == (T)0x1c);                                                         \
    shmem_ctx_##N##_atomic_fetch_and_nbi(ctx, &old, dest, (T)0, right);            \
    settle();                                                                      \
    shmem_##N##_atomic_fetch_or_nbi(&old, dest, (T)1, right);                      \
    settle();                                                                      \
    shmem_ctx_##N##_atomic_fetch_xor_nbi(ctx, &old, dest, (T)3, right);            \
    shmem_ctx_quiet(ctx);                                                          \
    shmem_barrier_all();                                                           \
    CHECK(*dest == (T)2);                                                          \
  }
ALL_WORDS(DEFINE_AMO_TEST, )
ALL_SIZED_WORDS(DEFINE_AMO_TEST, )
ALL_AMO_REALS(DEFINE_EXTENDED_TEST, )
ALL_BITS(DEFINE_BITS_TEST, )
ALL_SIZED_BITS(DEFINE_BITS_TEST, )

/* Waits. The left neighbour changes elements 1 and 3 of 4. */
#define DEFINE_WAIT_TEST(A, N, T)                                                                  \
  static void test_wait_##N(void* object, uint64_t* signal) {                                      \
    T* const words = (T*)object;                                                                   \
    const int status[4] = {0, 0, 0, 1};                                                            \
    const int none[4] = {1, 1, 1, 1};                                                              \
    const T values[4] = {0, 7, 0, 9};                                                              \
    size_t indices[4];                                                                             \
    size_t found;                                                                                  \
    (void)signal;                                                                                  \
    CHECK(shmem_##N##_test(&words[0], SHMEM_CMP_EQ, 0) == 1);                                      \
    CHECK(shmem_##N##_test(&words[0], SHMEM_CMP_GT, 0) == 0);                                      \
    CHECK(shmem_##N##_test_any(words, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX);                      \
    CHECK(shmem_##N##_wait_until_any(words, 4, none, SHMEM_CMP_NE, 0) == SIZE_MAX);                \
    CHECK(shmem_##N##_wait_until_some(words, 4, indices, none, SHMEM_CMP_NE, 0) == 0);             \
    CHECK(shmem_##N##_test_some(words, 4, indices, none, SHMEM_CMP_EQ, 0) == 0);                   \
    CHECK(shmem_##N##_test_all(words, 4, none, SHMEM_CMP_NE, 0) == 1);                             \
    shmem_barrier_all();                                                                           \
    shmem_##N##_p(&words[1], (T)7, right);                                                         \
    shmem_fence();                                                                                 \
    shmem_##N##_p(&words[3], (T)9, right);                                                         \
    shmem_##N##_wait_until(&words[3], SHMEM_CMP_GE, 9);                                            \
    shmem_##N##_wait(&words[1], 0);                                                                \
    CHECK(words[1] == 7 && words[3] == 9);                                                         \
    CHECK(shmem_##N##_wait_until_any(words, 4, status, SHMEM_CMP_NE, 0) == 1);                     \
    CHECK(shmem_##N##_test_any(words, 4, NULL, SHMEM_CMP_EQ, 9) == 3);                             \
    CHECK(shmem_##N##_test_any(words, 4, NULL, SHMEM_CMP_EQ, 100) == SIZE_MAX);                    \
    found = shmem_##N##_wait_until_some(words, 4, indices, NULL, SHMEM_CMP_NE, 0);                 \
    CHECK(found == 2 && indices[0] == 1 && indices[1] == 3);                                       \
    found = shmem_##N##_test_some(words, 4, indices, status, SHMEM_CMP_NE, 0);                     \
    CHECK(found == 1 && indices[0] == 1);                                                          \
    shmem_##N##_wait_until_all(words, 4, status, SHMEM_CMP_LT, 8);                                 \
    CHECK(shmem_##N##_test_all(words, 4, NULL, SHMEM_CMP_LT, 8) == 0);                             \
    CHECK(shmem_##N##_test_all(words, 4, NULL, SHMEM_CMP_LE, 9) == 1);                             \
    shmem_##N##_wait_until_all_vector(words, 4, NULL, SHMEM_CMP_EQ, values);                       \
    CHECK(shmem_##N##_test_all_vector(words, 4, NULL, SHMEM_CMP_EQ, values) == 1);                 \
    CHECK(shmem_##N##_wait_until_any_vector(words + 1, 3, NULL, SHMEM_CMP_EQ, values + 1) < 3);    \
    CHECK(shmem_##N##_test_any_vector(words, 1, NULL, SHMEM_CMP_EQ, values) == 0);                 \
    CHECK(shmem_##N##_wait_until_some_vector(words, 4, indices, NULL, SHMEM_CMP_EQ, values) == 4); \
    CHECK(shmem_##N##_test_some_vector(words, 4, indices, status, SHMEM_CMP_GE, values) == 3);     \
    shmem_barrier_all();                                                                           \
  }
ALL_WORDS(DEFINE_WAIT_TEST, )
ALL_SIZED_WORDS(DEFINE_WAIT_TEST, )
ALL_SHORTS(DEFINE_WAIT_TEST, )

#define RUN_RMA(A, N, T) ON_BOTH(test_rma_##N);
#define RUN_SIZE(A, BITS, BYTES) \
  ON_BOTH(test_size_##BITS);     \
  ON_BOTH(test_strided_##BITS);
#define RUN_EXTENDED(A, N, T) ON_BOTH(test_extended_##N);
#define RUN_AMO(A, N, T)      \
  ON_BOTH(test_extended_##N); \
  ON_BOTH(test_amo_##N);
#define RUN_BITS(A, N, T) ON_BOTH(test_bits_##N);
#define RUN_WAIT(A, N, T) ON_BOTH(test_wait_##N);

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  right = right_pe();
  left = left_pe();
  block = shmem_malloc(sizeof fixed);
  heap_signal = (uint64_t*)shmem_calloc(1, sizeof *heap_signal);
  CHECK(block != NULL && heap_signal != NULL);
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
  ALL_REALS(RUN_RMA, )
  ALL_INTEGERS(RUN_RMA, )
  ALL_SIZED(RUN_RMA, )
  ALL_SIZES(RUN_SIZE, )
  ON_BOTH(test_size_mem);
  ALL_WORDS(RUN_AMO, )
  ALL_SIZED_WORDS(RUN_AMO, )
  ALL_AMO_REALS(RUN_EXTENDED, )
  ALL_BITS(RUN_BITS, )
  ALL_SIZED_BITS(RUN_BITS, )
  ALL_WORDS(RUN_WAIT, )
  ALL_SIZED_WORDS(RUN_WAIT, )
  ALL_SHORTS(RUN_WAIT, )
  shmem_ctx_destroy(ctx);
  shmem_free(heap_signal);
  shmem_free(block);
  shmem_finalize();
  return 0;
}
