/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs for Berkeley UPC use beyond the language. */
#include <bupc_collectivev.h>
#include <bupc_extensions.h>
#include <errno.h>
#include <upc.h>

#include "upc_tests.h"

/* shared 64 bytes words[THREADS]; shared bupc_sem_t *semaphores[THREADS]; */
static uint64_t words;
static uint64_t semaphores;
static const mob_upc_object_t objects[] = {
    {"words", &words, 64, 1, 1, MOB_UPC_TIMES_THREADS, 16, NULL, 0, HERE},
    {"semaphores", &semaphores, sizeof(mob_upc_ptr_t), 1, 1, MOB_UPC_TIMES_THREADS, 16, NULL, 0,
     HERE},
};
REGISTER(objects, NULL)

static mob_upc_ptr_t word_of(int thread) { return mob_upc_pointer(words, (uint32_t)thread, 0); }

#define WORDS(X, T, mode, P)                                   \
  bupc_atomic##X##_set_##mode(P, (T)5);                        \
  CHECK(bupc_atomic##X##_read_##mode(P) == (T)5);              \
  CHECK(bupc_atomic##X##_swap_##mode(P, (T)6) == (T)5);        \
  CHECK(bupc_atomic##X##_cswap_##mode(P, (T)5, (T)9) == (T)6); \
  CHECK(bupc_atomic##X##_cswap_##mode(P, (T)6, (T)9) == (T)6); \
  CHECK(bupc_atomic##X##_read_##mode(P) == (T)9);
#define NUMBERS(X, T, mode, P)                                  \
  WORDS(X, T, mode, P)                                          \
  CHECK(bupc_atomic##X##_fetchadd_##mode(P, (T)3) == (T)9);     \
  CHECK(bupc_atomic##X##_fetchand_##mode(P, (T)10) == (T)12);   \
  CHECK(bupc_atomic##X##_fetchor_##mode(P, (T)5) == (T)8);      \
  CHECK(bupc_atomic##X##_fetchxor_##mode(P, (T)1) == (T)13);    \
  CHECK(bupc_atomic##X##_mswap_##mode(P, (T)6, (T)2) == (T)12); \
  CHECK(bupc_atomic##X##_fetchnot_##mode(P) == (T)10);          \
  CHECK(bupc_atomic##X##_read_##mode(P) == (T) ~(T)10);
#define MODES(WHICH, X, T)                   \
  WHICH(X, T, relaxed, word_of(THREADS - 1)) \
  WHICH(X, T, strict, word_of(THREADS - 1))  \
  WHICH(X, T, private, &private_word)

static void atomics(void) {
  static union {
    uint64_t word;
    double real;
  } private_word;
  if (MYTHREAD == 0) {
    MODES(NUMBERS, I, int)
    MODES(NUMBERS, UI, unsigned)
    MODES(NUMBERS, L, long)
    MODES(NUMBERS, UL, unsigned long)
    MODES(NUMBERS, I64, int64_t)
    MODES(NUMBERS, U64, uint64_t)
    MODES(NUMBERS, I32, int32_t)
    MODES(NUMBERS, U32, uint32_t)
    MODES(WORDS, F, float)
    MODES(WORDS, D, double)
  }
  mob_upc_barrier(HERE);
}

static void semaphore_calls(void) {
  const int right = (MYTHREAD + 1) % THREADS;
  mob_upc_ptr_t mine = bupc_sem_alloc(0), theirs, flag;
  int i, value = 0;
  mob_upc_put_shared(mob_upc_pointer(semaphores, (uint32_t)MYTHREAD, 0), mine);
  mob_upc_barrier(HERE);
  theirs = mob_upc_get_shared(mob_upc_pointer(semaphores, (uint32_t)right, 0));
  CHECK(bupc_sem_try(mine) == 0 || THREADS > 1);
  mob_upc_barrier(HERE);
  /* A token round: each adds to what its left neighbour gave it. */
  for (i = 0; i < 5; ++i) {
    if (MYTHREAD != 0) bupc_sem_wait(mine);
    value = MYTHREAD == 0 ? i : *(volatile int*)mob_upc_local(words) + 1;
    bupc_memput_signal(word_of(right), &value, sizeof value, theirs, 1);
    if (MYTHREAD == 0) {
      bupc_sem_wait(mine);
      CHECK(*(volatile int*)mob_upc_local(words) == i + (THREADS - 1));
    }
  }
  mob_upc_barrier(HERE);
  bupc_sem_postN(theirs, 7);
  bupc_sem_waitN(mine, 3);
  CHECK(bupc_sem_tryN(mine, 5) == 0);
  CHECK(bupc_sem_tryN(mine, 4) == 1);
  mob_upc_barrier(HERE);
  /* A waiter that is not its owner. */
  bupc_sem_post(mine);
  mob_upc_barrier(HERE);
  bupc_sem_wait(theirs);
  mob_upc_barrier(HERE);
  flag = bupc_sem_alloc(BUPC_SEM_BOOLEAN | BUPC_SEM_SPRODUCER | BUPC_SEM_SCONSUMER);
  bupc_sem_post(flag);
  bupc_sem_post(flag);
  CHECK(bupc_sem_try(flag) == 1 && bupc_sem_try(flag) == 0);
  bupc_sem_free(flag);
  bupc_sem_free(mine);
  bupc_sem_free(mob_upc_null());
  mob_upc_barrier(HERE);
}

static void vectors(void) {
  enum { kBytes = 4096 };
  static char out[kBytes], in[kBytes];
  const uint32_t right = (uint32_t)((MYTHREAD + 1) % THREADS);
  mob_upc_ptr_t all = upc_all_alloc((size_t)THREADS, 2 * kBytes);
  mob_upc_ptr_t there = mob_upc_pointer(all.offset, right, 0);
  size_t i;
  for (i = 0; i < kBytes; ++i) out[i] = (char)(i * 3 + (size_t)MYTHREAD);
  {
    /* 10 + 20 + 30 bytes from 25 + 35. */
    bupc_pmemvec_t from[] = {{out, 25}, {out + 100, 35}};
    bupc_smemvec_t to[] = {{mob_upc_member(there, 5), 10},
                           {mob_upc_member(there, 50), 20},
                           {mob_upc_member(there, 0), 0},
                           {mob_upc_member(there, 200), 30}};
    bupc_pmemvec_t back[] = {{in, 60}};
    bupc_smemvec_t copy[] = {{mob_upc_member(there, kBytes), 60}};
    bupc_memput_vlist(4, to, 2, from);
    bupc_memget_vlist(1, back, 4, to);
    CHECK(memcmp(in, out, 25) == 0 && memcmp(in + 25, out + 100, 35) == 0);
    bupc_waitsync(bupc_memcpy_vlist_async(1, copy, 4, to));
    memset(in, 0, sizeof in);
    bupc_waitsync(bupc_memget_vlist_async(1, back, 1, copy));
    CHECK(memcmp(in, out, 25) == 0 && memcmp(in + 25, out + 100, 35) == 0);
  }
  {
    const void* from[] = {out, out + 64, out + 32};
    void* back[] = {in, in + 48};
    mob_upc_ptr_t to[] = {there, mob_upc_member(there, 100), mob_upc_member(there, 300)};
    bupc_memput_ilist(3, to, 16, 3, from, 16);
    bupc_memget_ilist(2, back, 24, 3, to, 16);
    CHECK(memcmp(in, out, 16) == 0 && memcmp(in + 16, out + 64, 8) == 0);
    CHECK(memcmp(in + 48, out + 72, 8) == 0 && memcmp(in + 56, out + 32, 16) == 0);
  }
  {
    /* 8 pieces of 4 bytes, 16 apart, from one of 32 bytes. */
    bupc_memput_fstrided(there, 4, 16, 8, out, 32, 0, 1);
    bupc_memget_fstrided(in, 32, 32, 1, there, 4, 16, 8);
    CHECK(memcmp(in, out, 32) == 0);
    bupc_memcpy_fstrided(mob_upc_member(there, kBytes), 8, 8, 4, there, 4, 16, 8);
    upc_memget(in + 64, mob_upc_member(there, kBytes), 32);
    CHECK(memcmp(in + 64, out, 32) == 0);
  }
  {
    /* A box of 8 bytes × 3 × 2. */
    const size_t count[] = {8, 3, 2};
    const size_t theirs[] = {20, 100};
    const size_t mine[] = {8, 24};
    bupc_memput_strided(there, theirs, out, mine, count, 2);
    memset(in, 0, sizeof in);
    bupc_memget_strided(in, mine, there, theirs, count, 2);
    CHECK(memcmp(in, out, 48) == 0 && in[48] == 0);
    CHECK(mob_upc_get_char(mob_upc_member(there, 120)) == out[32]);
    bupc_memcpy_strided(mob_upc_member(there, kBytes), mine, there, theirs, count, 2);
    upc_memget(in + 100, mob_upc_member(there, kBytes), 48);
    CHECK(memcmp(in + 100, out, 48) == 0);
    bupc_waitsync(bupc_memget_strided_async(in, mine, there, theirs, count, 0));
  }
  {
    upc_handle_t handles[3];
    int i3;
    for (i3 = 0; i3 < 3; ++i3) {
      handles[i3] = bupc_memput_async(mob_upc_member(there, (size_t)i3 * 1000), out, 1000);
    }
    bupc_waitsync_some(handles, 3);
    while (!bupc_trysync_some(handles, 3)) {
    }
    bupc_waitsync_all(handles, 3);
    CHECK(bupc_trysync_all(handles, 3) == 1 && handles[2] == BUPC_COMPLETE_HANDLE);
    bupc_begin_accessregion();
    bupc_memget_asynci(in, mob_upc_member(there, 2000), 1000);
    bupc_waitsync(bupc_end_accessregion());
    CHECK(memcmp(in, out, 1000) == 0);
  }
  upc_all_free(all);
}

static void values(void) {
  int i, sum = 0, mine = MYTHREAD * 3 + 1;
  double real = MYTHREAD + 0.5;
  unsigned char byte = (unsigned char)(MYTHREAD + 1);
  int all[16] = {0};
  CHECK(bupc_allv_broadcast(int, mine, THREADS - 1) == 3 * (THREADS - 1) + 1);
  CHECK(bupc_allv_broadcast(double, real, 0) == 0.5);
  bupc_allv_gather(int, mine, 0, all);
  for (i = 0; i < THREADS; ++i) CHECK(all[i] == (MYTHREAD == 0 ? 3 * i + 1 : 0));
  CHECK(bupc_allv_gather_all(int, mine, all) == all);
  for (i = 0; i < THREADS; ++i) {
    CHECK(all[i] == 3 * i + 1);
    sum += all[i];
  }
  CHECK(bupc_allv_scatter(int, THREADS - 1, all) == mine);
  CHECK(bupc_allv_permute(int, mine, (MYTHREAD + 1) % THREADS) ==
        3 * ((MYTHREAD + THREADS - 1) % THREADS) + 1);
  CHECK(bupc_allv_reduce(int, mine, 0, UPC_ADD) == (MYTHREAD == 0 ? sum : 0));
  CHECK(bupc_allv_reduce(double, real, -1, UPC_MAX) == THREADS - 0.5);
  CHECK(bupc_allv_reduce_all(unsigned char, byte, UPC_MIN) == 1);
  CHECK(bupc_allv_reduce_all(int, mine, UPC_ADD) == sum);
  CHECK(bupc_allv_prefix_reduce(double, real, UPC_ADD) ==
        (MYTHREAD + 1) * MYTHREAD / 2.0 + 0.5 * (MYTHREAD + 1));
}

static void places(void) {
  char text[BUPC_DUMP_MIN_LENGTH];
  mob_upc_ptr_t p = word_of(THREADS - 1), block = upc_alloc(3000000), back;
  int i;
  CHECK(bupc_dump_shared(p, text, 10) == -1 && errno == EINVAL);
  CHECK(bupc_dump_shared(p, text, sizeof text) == 0 && strstr(text, "thread=") != NULL);
  CHECK(mob_upc_equal(bupc_inverse_cast(mob_upc_local(words)), word_of(MYTHREAD)));
  back = bupc_inverse_cast(mob_upc_to_private(block));
  CHECK(mob_upc_equal(back, block));
  CHECK(mob_upc_is_null(bupc_inverse_cast(text)) && mob_upc_is_null(bupc_inverse_cast(NULL)));
  CHECK(mob_upc_equal(bupc_local_to_shared(mob_upc_local(words), THREADS - 1, 0), p));
  CHECK(mob_upc_equal(bupc_ptradd(p, 0, 8, 3), mob_upc_add_indefinite(p, 3, 8)));
  CHECK(mob_upc_equal(bupc_ptradd(p, 1, 8, 3), mob_upc_add_cyclic(p, 3, 8)));
  CHECK(mob_upc_equal(bupc_ptradd(p, 2, 8, 3), mob_upc_add_blocked(p, 3, 8, 2)));
  CHECK(bupc_thread_distance(MYTHREAD, MYTHREAD) == BUPC_THREADS_SAME);
  for (i = 0; i < THREADS; ++i) {
    const unsigned distance = bupc_thread_distance(MYTHREAD, i);
    CHECK(distance == bupc_thread_distance(i, MYTHREAD));
    CHECK((distance < BUPC_THREADS_FAR) == (bupc_cast(word_of(i)) != NULL));
    CHECK(bupc_castable(word_of(i)) == bupc_thread_castable((unsigned)i));
  }
  CHECK(bupc_ticks_to_us(5000) == 5 && bupc_ticks_to_ns(5) == 5);
  CHECK(bupc_tick_granularityus() > 0 && bupc_tick_overheadus() > 0);
  CHECK(bupc_getenv("UPC_SHARED_HEAP_SIZE") != NULL && bupc_getenv("NOT_THERE") == NULL);
  bupc_poll();
  bupc_trace_setmask("PG");
  bupc_trace_settracelocal(1);
  bupc_stats_setmask("");
  CHECK(bupc_trace_getmask()[0] == '\0' && bupc_stats_getmask()[0] == '\0');
  CHECK(bupc_trace_gettracelocal() == 0);
  bupc_trace_printf(("nothing %d", 1));
  mob_upc_barrier(HERE);
  upc_free(block);
  bupc_all_free(upc_all_alloc(1, 1));
  bupc_all_lock_free(upc_all_lock_alloc());
}

MOB_UPC_API int mob_upc_main(void);
int mob_upc_main(void) {
  atomics();
  semaphore_calls();
  vectors();
  values();
  places();
  return 0;
}
