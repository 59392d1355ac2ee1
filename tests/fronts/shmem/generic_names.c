/* SPDX-License-Identifier: BSD-3-Clause */

/* The type-generic names, for each of their types: compiled as C11 and, where they are overloads,
 * as C++. Each PE works on objects of its right neighbour. */

#include "check.h"
#include "standard_types.h"

__extension__ typedef float _Complex complex_float;
__extension__ typedef double _Complex complex_double;
#define ALL_COMPLEX(X, A)       \
  X(A, complexf, complex_float) \
  X(A, complexd, complex_double)

enum { kCount = 8 };

static int me;
static int pes;
static int right;
static int left;
static shmem_ctx_t ctx;
static uint64_t signal_word;

static void settle(void) {
  shmem_ctx_quiet(ctx);
  shmem_quiet();
}

#define V(T, i, pe) ((T)((i) + 3 * (pe) + 1))
#define DEFINE_RMA_TEST(A, N, T)                                                                \
  static T dest_##N[2 * kCount];                                                                \
  static void test_rma_##N(void) {                                                              \
    T* const dest = dest_##N;                                                                   \
    T source[2 * kCount];                                                                       \
    T back[2 * kCount];                                                                         \
    int i;                                                                                      \
    signal_word = 0;                                                                            \
    for (i = 0; i < 2 * kCount; ++i) source[i] = V(T, i, me);                                   \
    memset(back, 0, sizeof back);                                                               \
    shmem_barrier_all();                                                                        \
    shmem_p(&dest[0], source[0], right);                                                        \
    shmem_p(ctx, &dest[1], source[1], right);                                                   \
    shmem_put(&dest[2], &source[2], 1, right);                                                  \
    shmem_put(ctx, &dest[3], &source[3], 1, right);                                             \
    shmem_put_nbi(&dest[4], &source[4], 1, right);                                              \
    shmem_put_nbi(ctx, &dest[5], &source[5], 1, right);                                         \
    shmem_iput(&dest[6], &source[6], 1, 1, 1, right);                                           \
    shmem_iput(ctx, &dest[7], &source[7], 1, 1, 1, right);                                      \
    shmem_ibput(&dest[8], &source[8], 1, 1, 1, 2, right);                                       \
    shmem_ibput(ctx, &dest[10], &source[10], 2, 2, 2, 1, right);                                \
    shmem_put_signal(&dest[12], &source[12], 1, &signal_word, 1, SHMEM_SIGNAL_ADD, right);      \
    shmem_put_signal(ctx, &dest[13], &source[13], 1, &signal_word, 1, SHMEM_SIGNAL_ADD, right); \
    shmem_put_signal_nbi(&dest[14], &source[14], 1, &signal_word, 1, SHMEM_SIGNAL_ADD, right);  \
    shmem_put_signal_nbi(ctx, &dest[15], &source[15], 1, &signal_word, 1, SHMEM_SIGNAL_ADD,     \
                         right);                                                                \
    settle();                                                                                   \
    shmem_barrier_all();                                                                        \
    CHECK(signal_word == 4);                                                                    \
    for (i = 0; i < 2 * kCount; ++i) CHECK(dest[i] == V(T, i, left));                           \
    CHECK(shmem_g(&dest[0], right) == V(T, 0, me));                                             \
    CHECK(shmem_g(ctx, &dest[1], right) == V(T, 1, me));                                        \
    shmem_get(&back[0], &dest[0], 2, right);                                                    \
    shmem_get(ctx, &back[2], &dest[2], 2, right);                                               \
    shmem_get_nbi(&back[4], &dest[4], 2, right);                                                \
    shmem_get_nbi(ctx, &back[6], &dest[6], 2, right);                                           \
    shmem_iget(&back[8], &dest[8], 1, 1, 2, right);                                             \
    shmem_iget(ctx, &back[10], &dest[10], 1, 1, 2, right);                                      \
    shmem_ibget(&back[12], &dest[12], 2, 2, 2, 1, right);                                       \
    shmem_ibget(ctx, &back[14], &dest[14], 2, 2, 2, 1, right);                                  \
    settle();                                                                                   \
    for (i = 0; i < 2 * kCount; ++i) CHECK(back[i] == source[i]);                               \
    shmem_barrier_all();                                                                        \
  }
ALL_REALS(DEFINE_RMA_TEST, )
ALL_INTEGERS(DEFINE_RMA_TEST, )

#define DEFINE_EXTENDED_TEST(A, N, T)                              \
  static T word_##N;                                               \
  static void test_extended_##N(void) {                            \
    T old = 0;                                                     \
    shmem_atomic_set(&word_##N, (T)3, right);                      \
    settle();                                                      \
    CHECK(shmem_atomic_fetch(&word_##N, right) == (T)3);           \
    shmem_atomic_set(ctx, &word_##N, (T)4, right);                 \
    settle();                                                      \
    CHECK(shmem_atomic_fetch(ctx, &word_##N, right) == (T)4);      \
    CHECK(shmem_atomic_swap(&word_##N, (T)5, right) == (T)4);      \
    CHECK(shmem_atomic_swap(ctx, &word_##N, (T)6, right) == (T)5); \
    shmem_atomic_fetch_nbi(&old, &word_##N, right);                \
    settle();                                                      \
    CHECK(old == (T)6);                                            \
    shmem_atomic_fetch_nbi(ctx, &old, &word_##N, right);           \
    shmem_atomic_swap_nbi(&old, &word_##N, (T)7, right);           \
    settle();                                                      \
    CHECK(old == (T)6);                                            \
    shmem_atomic_swap_nbi(ctx, &old, &word_##N, (T)0, right);      \
    settle();                                                      \
    CHECK(old == (T)7);                                            \
    shmem_set(&word_##N, (T)1, right);                             \
    settle();                                                      \
    CHECK(shmem_swap(&word_##N, (T)0, right) == (T)1);             \
    CHECK(shmem_fetch(&word_##N, right) == (T)0);                  \
    shmem_barrier_all();                                           \
  }
#define DEFINE_AMO_TEST(A, N, T)                                               \
  DEFINE_EXTENDED_TEST(A, N, T)                                                \
  static void test_amo_##N(void) {                                             \
    T* const word = &word_##N;                                                 \
    T old = 0;                                                                 \
    shmem_atomic_inc(word, right);                                             \
    shmem_atomic_inc(ctx, word, right);                                        \
    shmem_atomic_add(word, (T)2, right);                                       \
    shmem_atomic_add(ctx, word, (T)3, right);                                  \
    shmem_inc(word, right);                                                    \
    shmem_add(word, (T)2, right);                                              \
    settle();                                                                  \
    CHECK(shmem_atomic_fetch_inc(word, right) == (T)10);                       \
    CHECK(shmem_atomic_fetch_inc(ctx, word, right) == (T)11);                  \
    CHECK(shmem_atomic_fetch_add(word, (T)3, right) == (T)12);                 \
    CHECK(shmem_atomic_fetch_add(ctx, word, (T)5, right) == (T)15);            \
    CHECK(shmem_finc(word, right) == (T)20);                                   \
    CHECK(shmem_fadd(word, (T)9, right) == (T)21);                             \
    CHECK(shmem_cswap(word, (T)30, (T)31, right) == (T)30);                    \
    CHECK(shmem_atomic_compare_swap(word, (T)31, (T)32, right) == (T)31);      \
    CHECK(shmem_atomic_compare_swap(ctx, word, (T)31, (T)33, right) == (T)32); \
    shmem_atomic_fetch_inc_nbi(&old, word, right);                             \
    settle();                                                                  \
    CHECK(old == (T)32);                                                       \
    shmem_atomic_fetch_inc_nbi(ctx, &old, word, right);                        \
    settle();                                                                  \
    shmem_atomic_fetch_add_nbi(&old, word, (T)1, right);                       \
    settle();                                                                  \
    shmem_atomic_fetch_add_nbi(ctx, &old, word, (T)1, right);                  \
    settle();                                                                  \
    CHECK(old == (T)35);                                                       \
    shmem_atomic_compare_swap_nbi(&old, word, (T)36, (T)37, right);            \
    settle();                                                                  \
    shmem_atomic_compare_swap_nbi(ctx, &old, word, (T)37, (T)38, right);       \
    settle();                                                                  \
    CHECK(old == (T)37);                                                       \
    shmem_barrier_all();                                                       \
    CHECK(*word == (T)38);                                                     \
    shmem_barrier_all();                                                       \
  }
#define DEFINE_BITS_TEST(A, N, T)                                    \
  static T bits_##N;                                                 \
  static void test_bits_##N(void) {                                  \
    T* const word = &bits_##N;                                       \
    T old = 0;                                                       \
    shmem_atomic_or(word, (T)7, right);                              \
    shmem_atomic_or(ctx, word, (T)8, right);                         \
    settle();                                                        \
    shmem_atomic_and(word, (T)14, right);                            \
    shmem_atomic_and(ctx, word, (T)13, right);                       \
    settle();                                                        \
    shmem_atomic_xor(word, (T)1, right);                             \
    shmem_atomic_xor(ctx, word, (T)2, right);                        \
    settle();                                                        \
    CHECK(shmem_atomic_fetch_or(word, (T)16, right) == (T)15);       \
    CHECK(shmem_atomic_fetch_or(ctx, word, (T)32, right) == (T)31);  \
    CHECK(shmem_atomic_fetch_and(word, (T)62, right) == (T)63);      \
    CHECK(shmem_atomic_fetch_and(ctx, word, (T)60, right) == (T)62); \
    CHECK(shmem_atomic_fetch_xor(word, (T)4, right) == (T)60);       \
    CHECK(shmem_atomic_fetch_xor(ctx, word, (T)8, right) == (T)56);  \
    shmem_atomic_fetch_or_nbi(&old, word, (T)1, right);              \
    settle();                                                        \
    shmem_atomic_fetch_or_nbi(ctx, &old, word, (T)2, right);         \
    settle();                                                        \
    CHECK(old == (T)49);                                             \
    shmem_atomic_fetch_and_nbi(&old, word, (T)50, right);            \
    settle();                                                        \
    shmem_atomic_fetch_and_nbi(ctx, &old, word, (T)48, right);       \
    settle();                                                        \
    CHECK(old == (T)50);                                             \
    shmem_atomic_fetch_xor_nbi(&old, word, (T)16, right);            \
    settle();                                                        \
    shmem_atomic_fetch_xor_nbi(ctx, &old, word, (T)32, right);       \
    settle();                                                        \
    CHECK(old == (T)32);                                             \
    shmem_barrier_all();                                             \
    CHECK(*word == 0);                                               \
    shmem_barrier_all();                                             \
  }
ALL_WORDS(DEFINE_AMO_TEST, )
ALL_AMO_REALS(DEFINE_EXTENDED_TEST, )
ALL_BITS(DEFINE_BITS_TEST, )

#define DEFINE_WAIT_TEST(A, N, T)                                                              \
  static T waits_##N[3];                                                                       \
  static void test_wait_##N(void) {                                                            \
    T* const words = waits_##N;                                                                \
    const T values[3] = {1, 2, 3};                                                             \
    const int* const status = NULL;                                                            \
    size_t indices[3];                                                                         \
    CHECK(!shmem_test(&words[1], SHMEM_CMP_EQ, (T)2));                                         \
    shmem_barrier_all();                                                                       \
    shmem_put(words, values, 3, right);                                                        \
    shmem_wait_until(&words[1], SHMEM_CMP_EQ, (T)2);                                           \
    shmem_wait_until_all(words, 3, status, SHMEM_CMP_GE, (T)1);                                \
    CHECK(shmem_wait_until_any(words, 3, status, SHMEM_CMP_EQ, (T)2) == 1);                    \
    CHECK(shmem_wait_until_some(words, 3, indices, status, SHMEM_CMP_EQ, (T)3) == 1);          \
    CHECK(shmem_test_all(words, 3, status, SHMEM_CMP_LE, (T)3));                               \
    CHECK(shmem_test_any(words, 3, status, SHMEM_CMP_EQ, (T)3) == 2);                          \
    CHECK(shmem_test_some(words, 3, indices, status, SHMEM_CMP_NE, (T)3) == 2);                \
    shmem_wait_until_all_vector(words, 3, status, SHMEM_CMP_EQ, values);                       \
    CHECK(shmem_wait_until_any_vector(words, 3, status, SHMEM_CMP_EQ, values) < 3);            \
    CHECK(shmem_wait_until_some_vector(words, 3, indices, status, SHMEM_CMP_EQ, values) == 3); \
    CHECK(shmem_test_all_vector(words, 3, status, SHMEM_CMP_EQ, values));                      \
    CHECK(shmem_test_any_vector(words, 3, status, SHMEM_CMP_EQ, values) < 3);                  \
    CHECK(shmem_test_some_vector(words, 3, indices, status, SHMEM_CMP_EQ, values) == 3);       \
    shmem_barrier_all();                                                                       \
  }
ALL_WORDS(DEFINE_WAIT_TEST, )
ALL_SHORTS(DEFINE_WAIT_TEST, )

/* Collective calls of all PEs. PE r gives r + 1. */
enum { kMostPes = 64 };
#define DEFINE_TEAM_TEST(A, N, T)                                                  \
  static T give_##N[2 * kMostPes];                                                 \
  static T take_##N[2 * kMostPes];                                                 \
  static void test_team_##N(void) {                                                \
    T* const give = give_##N;                                                      \
    T* const take = take_##N;                                                      \
    int i;                                                                         \
    for (i = 0; i < 2 * pes; ++i) give[i] = (T)(me + 1);                           \
    shmem_barrier_all();                                                           \
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, take, give, 2, pes - 1) == 0);         \
    CHECK(take[0] == (T)pes && take[1] == (T)pes);                                 \
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, take, give, (size_t)(1 + me % 2)) == 0); \
    for (i = 0; i < pes; ++i) CHECK(take[i + i / 2] == (T)(i + 1));                \
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, take, give, 1) == 0);                   \
    for (i = 0; i < pes; ++i) CHECK(take[i] == (T)(i + 1));                        \
    CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, take, give, 1) == 0);                   \
    for (i = 0; i < pes; ++i) CHECK(take[i] == (T)(i + 1));                        \
    CHECK(shmem_alltoalls(SHMEM_TEAM_WORLD, take, give, 2, 2, 1) == 0);            \
    for (i = 0; i < pes; ++i) CHECK(take[2 * i] == (T)(i + 1));                    \
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, take, give, 2) == 0);                 \
    CHECK(take[0] == (T)pes && take[1] == (T)pes);                                 \
    CHECK(shmem_min_reduce(SHMEM_TEAM_WORLD, take, give, 2) == 0);                 \
    CHECK(take[0] == (T)1);                                                        \
    test_sums_##N(give, take);                                                     \
  }
#define DEFINE_SUM_TEST(A, N, T)                                    \
  static void test_sums_##N(T* give, T* take) {                     \
    T product = (T)1;                                               \
    int i;                                                          \
    for (i = 0; i < pes; ++i) product = (T)(product * (T)(i + 1));  \
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, take, give, 1) == 0);  \
    CHECK(take[0] == (T)(pes * (pes + 1) / 2));                     \
    CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, take, give, 1) == 0); \
    CHECK(take[0] == product);                                      \
    CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, take, give, 1) == 0);  \
    CHECK(take[0] == (T)((me + 1) * (me + 2) / 2));                 \
    CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, take, give, 1) == 0);  \
    CHECK(take[0] == (T)(me * (me + 1) / 2));                       \
    shmem_barrier_all();                                            \
  }
#define DEFINE_COMPLEX_TEST(A, N, T)   \
  DEFINE_SUM_TEST(A, N, T)             \
  static T give_##N[1];                \
  static T take_##N[1];                \
  static void test_team_##N(void) {    \
    give_##N[0] = (T)(me + 1);         \
    test_sums_##N(give_##N, take_##N); \
  }
#define DEFINE_BIT_REDUCE_TEST(A, N, T)                                         \
  static void test_bit_reduce_##N(void) {                                       \
    T* const give = give_##N;                                                   \
    T* const take = take_##N;                                                   \
    give[0] = (T)(me % 2 + 2);                                                  \
    CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, take, give, 1) == 0);              \
    CHECK(take[0] == (T)2);                                                     \
    CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, take, give, 1) == 0);               \
    CHECK(take[0] == (T)(pes > 1 ? 3 : 2));                                     \
    CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, take, give, 1) == 0);              \
    CHECK(take[0] == (T)((pes % 2 != 0 ? 2 : 0) + (pes / 2 % 2 != 0 ? 1 : 0))); \
    shmem_barrier_all();                                                        \
  }
ALL_REALS(DEFINE_SUM_TEST, )
ALL_INTEGERS(DEFINE_SUM_TEST, )
ALL_REALS(DEFINE_TEAM_TEST, )
ALL_INTEGERS(DEFINE_TEAM_TEST, )
ALL_COMPLEX(DEFINE_COMPLEX_TEST, )
ALL_INTEGERS(DEFINE_BIT_REDUCE_TEST, )

#define RUN_RMA(A, N, T) test_rma_##N();
#define RUN_EXTENDED(A, N, T) test_extended_##N();
#define RUN_AMO(A, N, T) test_amo_##N();
#define RUN_BITS(A, N, T) test_bits_##N();
#define RUN_WAIT(A, N, T) test_wait_##N();
#define RUN_TEAM(A, N, T) test_team_##N();
#define RUN_BIT_REDUCE(A, N, T) test_bit_reduce_##N();

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  CHECK(pes <= kMostPes);
  right = right_pe();
  left = left_pe();
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  ALL_REALS(RUN_RMA, )
  ALL_INTEGERS(RUN_RMA, )
  ALL_WORDS(RUN_EXTENDED, )
  ALL_AMO_REALS(RUN_EXTENDED, )
  ALL_WORDS(RUN_AMO, )
  ALL_BITS(RUN_BITS, )
  ALL_WORDS(RUN_WAIT, )
  ALL_SHORTS(RUN_WAIT, )
  ALL_REALS(RUN_TEAM, )
  ALL_INTEGERS(RUN_TEAM, )
  ALL_COMPLEX(RUN_TEAM, )
  ALL_INTEGERS(RUN_BIT_REDUCE, )
  signal_word = 0;
  shmem_barrier_all();
  shmem_signal_set(&signal_word, 3, right);
  settle();
  shmem_signal_add(ctx, &signal_word, 2, right);
  settle();
  shmem_signal_add(&signal_word, 1, right);
  CHECK(shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 6) == 6);
  shmem_barrier_all();
  shmem_signal_set(ctx, &signal_word, 1, right);
  CHECK(shmem_signal_wait_until(&signal_word, SHMEM_CMP_LT, 6) == 1);
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
