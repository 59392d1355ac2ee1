/* SPDX-License-Identifier: BSD-3-Clause */

/* Everything that does not depend on types: set-up, the symmetric heap, static variables, teams,
 * contexts, threads, active sets, locks and sessions. */

#include <pthread.h>

#include "check.h"

static int me;
static int pes;

/* Of several kinds: with and without a first value, of the program and of the library that it
 * links. */
static long zeros[1000];
static long set_here[3] = {1, 2, 3};
extern long library_word;
extern long* library_address(void);
static char large[3 << 20];

static void set_up(void) {
  int major = 0;
  int minor = 0;
  int level = -1;
  int is = 0;
  char name[SHMEM_MAX_NAME_LEN];
  shmem_query_initialized(&is);
  CHECK(is != 0);
  shmem_query_thread(&level);
  CHECK(level == SHMEM_THREAD_MULTIPLE);
  shmem_info_get_version(&major, &minor);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
  CHECK(major == 1 && minor == 6);
  shmem_info_get_name(name);
  CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
  CHECK(me >= 0 && me < pes && _my_pe() == me && _num_pes() == pes);
  CHECK(my_pe() == me && num_pes() == pes);
  CHECK(shmem_pe_accessible(0) == 1 && shmem_pe_accessible(pes - 1) == 1);
  CHECK(shmem_pe_accessible(pes) == 0 && shmem_pe_accessible(-1) == 0);
  shmem_pcontrol(1, "anything");
  shmem_clear_cache_inv();
  shmem_set_cache_inv();
  shmem_clear_cache_line_inv(zeros);
  shmem_set_cache_line_inv(zeros);
  shmem_udcflush();
  shmem_udcflush_line(zeros);
  /* Counted: a second initialisation needs a second end. */
  CHECK(shmem_init_thread(SHMEM_THREAD_FUNNELED, &level) == 0 && level >= SHMEM_THREAD_FUNNELED);
  shmem_finalize();
  shmem_query_initialized(&is);
  CHECK(is != 0);
}

static void heap(void) {
  char* all[5];
  long local;
  size_t i;
  CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 4) == NULL);
  all[0] = (char*)shmem_malloc(100);
  all[1] = (char*)shmem_calloc(10, 100);
  all[2] = (char*)shmem_align(4096, 5000);
  all[3] = (char*)shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE);
  all[4] = (char*)shmem_malloc(10 << 20);
  for (i = 0; i < 5; ++i) CHECK(all[i] != NULL);
  for (i = 0; i < 1000; ++i) CHECK(all[1][i] == 0);
  CHECK((uintptr_t)all[2] % 4096 == 0 && (uintptr_t)all[0] % 16 == 0);
  CHECK(shmem_addr_accessible(all[4], right_pe()) == 1);
  CHECK(shmem_addr_accessible(&local, right_pe()) == 0);
  CHECK(shmem_addr_accessible(zeros, right_pe()) == 1);
  /* The last byte of each block. */
  shmem_char_p(all[0] + 99, 'a', right_pe());
  shmem_char_p(all[4] + (10 << 20) - 1, 'b', right_pe());
  shmem_barrier_all();
  CHECK(all[0][99] == 'a' && all[4][(10 << 20) - 1] == 'b');
  memset(all[0], me + 1, 100);
  all[0] = (char*)shmem_realloc(all[0], 1 << 20);
  CHECK(all[0] != NULL && all[0][0] == me + 1 && all[0][99] == me + 1);
  all[0] = (char*)shmem_realloc(all[0], 50);
  CHECK(all[0] != NULL && all[0][49] == me + 1);
  CHECK(shmem_ptr(all[0], me) == all[0]);
  for (i = 0; i < 5; ++i) shmem_free(all[i]);
  shmem_free(NULL);
  /* An alignment beyond the pages of the heap. */
  all[0] = (char*)shmem_align(8 << 20, 100);
  CHECK(all[0] != NULL && (uintptr_t)all[0] % (8 << 20) == 0);
  shmem_char_p(all[0] + 99, (char)(me + 1), right_pe());
  shmem_barrier_all();
  CHECK(all[0][99] == left_pe() + 1);
  all[0] = (char*)shmem_realloc(all[0], 200);
  CHECK(all[0] != NULL && all[0][99] == left_pe() + 1);
  shmem_free(all[0]);
  all[0] = (char*)shmem_align(16 << 20, 1 << 20);
  CHECK(all[0] != NULL && (uintptr_t)all[0] % (16 << 20) == 0);
  shmem_free(all[0]);
  all[0] = (char*)shmalloc(24);
  all[0] = (char*)shrealloc(all[0], 48);
  all[1] = (char*)shmemalign(64, 48);
  CHECK(all[0] != NULL && (uintptr_t)all[1] % 64 == 0);
  shfree(all[1]);
  shfree(all[0]);
}

/* A heap that is full gives null everywhere, and works as before. */
static void full_heap(void) {
  void* block;
  size_t bytes = (size_t)1 << 50;
  CHECK(shmem_malloc(bytes) == NULL);
  CHECK(shmem_calloc(bytes, bytes) == NULL);
  block = shmem_malloc(1000);
  CHECK(block != NULL);
  CHECK(shmem_realloc(block, bytes) == NULL);
  shmem_free(block);
}

static void statics(void) {
  long got = 0;
  int i;
  static char lines[4096];
  char* there;
  for (i = 0; i < 1000; ++i) zeros[i] = 0;
  library_word = 10 + me;
  shmem_barrier_all();
  shmem_long_p(&zeros[999], me + 1, right_pe());
  shmem_long_p(&set_here[1], 100 + me, right_pe());
  CHECK(shmem_long_g(&library_word, right_pe()) == 10 + right_pe());
  shmem_long_atomic_add(library_address(), 5, right_pe());
  shmem_char_p(&large[sizeof large - 1], (char)(me + 1), right_pe());
  for (i = 0; i < (int)sizeof lines; ++i) lines[i] = (char)(i + me);
  shmem_putmem(large, lines, sizeof lines, right_pe());
  shmem_barrier_all();
  CHECK(zeros[999] == left_pe() + 1 && zeros[998] == 0);
  CHECK(set_here[0] == 1 && set_here[1] == 100 + left_pe() && set_here[2] == 3);
  CHECK(library_word == 15 + me);
  CHECK(large[sizeof large - 1] == (char)(left_pe() + 1));
  for (i = 0; i < (int)sizeof lines; ++i) CHECK(large[i] == (char)(i + left_pe()));
  there = (char*)shmem_ptr(zeros, right_pe());
  if (there != NULL) {
    memcpy(&got, there + 999 * sizeof(long), sizeof got);
    CHECK(got == me + 1);
  }
  shmem_barrier_all();
}

/* `team` has PE `mine` of `size`; its PE i is `start + i * stride` in the world. */
static void check_team(shmem_team_t team, int mine, int size, int start, int stride) {
  static long sum;
  static long each;
  static long word;
  shmem_ctx_t ctx;
  shmem_team_t of_ctx;
  int i;
  CHECK(shmem_team_my_pe(team) == mine && shmem_team_n_pes(team) == size);
  for (i = 0; i < size; ++i) {
    CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == start + i * stride);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team) == i);
  }
  CHECK(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD) == -1);
  each = mine + 1;
  CHECK(shmem_long_sum_reduce(team, &sum, &each, 1) == 0);
  CHECK(sum == (long)size * (size + 1) / 2);
  CHECK(shmem_long_broadcast(team, &sum, &each, 1, size - 1) == 0 && sum == size);
  CHECK(shmem_team_sync(team) == 0);
  /* PE numbers of a context are the team's. */
  word = 0;
  CHECK(shmem_team_sync(team) == 0);
  CHECK(shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE, &ctx) == 0);
  CHECK(shmem_ctx_get_team(ctx, &of_ctx) == 0 && of_ctx == team);
  shmem_ctx_long_p(ctx, &word, 50 + mine, (mine + 1) % size);
  shmem_ctx_quiet(ctx);
  CHECK(shmem_team_sync(team) == 0);
  CHECK(word == 50 + (mine + size - 1) % size);
  CHECK(shmem_team_sync(team) == 0);
  CHECK(shmem_ctx_long_g(ctx, &word, (mine + 1) % size) == 50 + mine);
  CHECK(shmem_ctx_long_atomic_fetch_add(ctx, &word, 1, (mine + 1) % size) == 50 + mine);
  CHECK(shmem_team_ptr(team, &word, mine) == &word);
  CHECK(shmem_team_ptr(team, &word, size) == NULL);
  CHECK(shmem_team_sync(team) == 0);
  shmem_ctx_destroy(ctx);
}

static void teams(void) {
  shmem_team_config_t config = {3};
  shmem_team_t even;
  shmem_team_t back;
  shmem_team_t x;
  shmem_team_t y;
  shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
  const int evens = (pes + 1) / 2;
  const int rows = (pes + 1) / 2;
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
  check_team(SHMEM_TEAM_WORLD, me, pes, 0, 1);
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
  CHECK(shmem_ptr(zeros, shmem_team_translate_pe(SHMEM_TEAM_SHARED, 0, SHMEM_TEAM_WORLD)) != NULL);
  CHECK(shmem_team_sync(SHMEM_TEAM_SHARED) == 0);
  /* Every second PE. */
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, evens, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &even) == 0);
  CHECK((even != SHMEM_TEAM_INVALID) == (me % 2 == 0));
  if (even != SHMEM_TEAM_INVALID) {
    config.num_contexts = 0;
    CHECK(shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
    CHECK(config.num_contexts == 3);
    check_team(even, me / 2, evens, 0, 2);
    /* Of these, backwards. */
    CHECK(shmem_team_split_strided(even, evens - 1, -1, evens, NULL, 0, &back) == 0);
    check_team(back, evens - 1 - me / 2, evens, 2 * (evens - 1), -2);
    shmem_team_destroy(back);
    shmem_team_destroy(even);
  }
  shmem_team_destroy(SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes + 1, NULL, 0, &even) != 0);
  CHECK(even == SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &even) != 0);
  /* Rows of two. */
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, &y) == 0);
  check_team(x, me % 2, me / 2 * 2 + 1 < pes ? 2 : 1, me / 2 * 2, 1);
  check_team(y, me / 2, me % 2 == 0 ? rows : pes / 2, me % 2, 2);
  shmem_team_destroy(x);
  shmem_team_destroy(y);
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &x) == 0 && x == SHMEM_TEAM_WORLD);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &x) != 0 && x == SHMEM_TEAM_INVALID);
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
}

static void sessions(void) {
  shmem_ctx_session_config_t config = {10};
  static uint64_t table[16];
  int i;
  shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, &config,
                          SHMEM_CTX_SESSION_TOTAL_OPS);
  for (i = 0; i < 16; ++i) shmem_uint64_atomic_xor(&table[i], (uint64_t)i + 1, right_pe());
  shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
  shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
  shmem_barrier_all();
  for (i = 0; i < 16; ++i) CHECK(table[i] == (uint64_t)i + 1);
}

/* Different strides at both sides. */
static void strides(void) {
  static long dest[16], got[16];
  long source[16];
  int i;
  for (i = 0; i < 16; ++i) source[i] = 100 * shmem_my_pe() + i;
  shmem_long_iput(dest, source, 3, 2, 4, right_pe());
  shmem_barrier_all();
  for (i = 0; i < 4; ++i) CHECK(dest[3 * i] == 100 * left_pe() + 2 * i);
  CHECK(dest[1] == 0 && dest[8] == 0);
  shmem_long_iget(got, dest, 1, 3, 4, right_pe());
  for (i = 0; i < 4; ++i) CHECK(got[i] == 100 * shmem_my_pe() + 2 * i);
  shmem_barrier_all();
  shmem_long_ibput(dest, source, 5, 3, 2, 3, right_pe());
  shmem_barrier_all();
  for (i = 0; i < 6; ++i) CHECK(dest[5 * (i / 2) + i % 2] == 100 * left_pe() + 3 * (i / 2) + i % 2);
  memset(got, 0, sizeof got);
  shmem_long_ibget(got, dest, 2, 5, 2, 3, right_pe());
  for (i = 0; i < 6; ++i) CHECK(got[i] == 100 * shmem_my_pe() + 3 * (i / 2) + i % 2);
  shmem_barrier_all();
}

static void quiets(void) {
  static long words[2];
  shmem_ctx_t ctx;
  const int targets[2] = {right_pe(), left_pe()};
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  shmem_long_put_nbi(&words[0], set_here, 1, right_pe());
  shmem_pe_quiet(targets, 2);
  shmem_ctx_long_put_nbi(ctx, &words[1], set_here, 1, right_pe());
  shmem_ctx_pe_quiet(ctx, targets, 1);
  shmem_pe_quiet(NULL, 0);
  shmem_ctx_quiet(SHMEM_CTX_INVALID);
  shmem_ctx_fence(SHMEM_CTX_INVALID);
  shmem_sync_all();
  CHECK(words[0] == 1 && words[1] == 1);
  shmem_ctx_destroy(ctx);
}

/* Threads, each with a context of its own. */
enum { kThreads = 3, kRounds = 200 };
static long of_threads[kThreads];

struct worker {
  pthread_t thread;
  int number;
};

static void* work(void* argument) {
  const struct worker* self = (const struct worker*)argument;
  shmem_ctx_t ctx;
  int i;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
  for (i = 0; i < kRounds; ++i) {
    shmem_ctx_long_atomic_add(ctx, &of_threads[self->number], 1, right_pe());
    if (i % 16 == 0) shmem_ctx_quiet(ctx);
  }
  shmem_ctx_destroy(ctx);
  return NULL;
}

static void threads(void) {
  struct worker workers[kThreads];
  int i;
  for (i = 0; i < kThreads; ++i) {
    workers[i].number = i;
    CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (i = 0; i < kThreads; ++i) pthread_join(workers[i].thread, NULL);
  shmem_barrier_all();
  for (i = 0; i < kThreads; ++i) CHECK(of_threads[i] == kRounds);
}

static void locks(void) {
  static long lock;
  static long lock_word;
  long* const on_heap = (long*)shmem_calloc(2, sizeof(long));
  int i;
  lock_word = 0;
  shmem_barrier_all();
  for (i = 0; i < 20; ++i) {
    /* Not atomic: the lock protects it. */
    shmem_set_lock(&lock);
    shmem_long_p(&lock_word, shmem_long_g(&lock_word, 0) + 1, 0);
    shmem_clear_lock(&lock);
    while (shmem_test_lock(&on_heap[0]) != 0) {
    }
    shmem_long_p(&on_heap[1], shmem_long_g(&on_heap[1], 0) + 1, 0);
    shmem_clear_lock(&on_heap[0]);
  }
  shmem_barrier_all();
  CHECK(shmem_long_g(&on_heap[1], 0) == 20L * pes);
  CHECK(me != 0 || lock_word == 20L * pes);
  shmem_barrier_all();
  /* A lock that is set is not free, not even for the PE behind. */
  if (me == 0) shmem_set_lock(&lock);
  shmem_barrier_all();
  if (me != 0) CHECK(shmem_test_lock(&lock) == 1);
  shmem_barrier_all();
  if (me == 0) shmem_clear_lock(&lock);
  shmem_barrier_all();
  shmem_free(on_heap);
}

/* The PE that has a lock tests it while another waits: it is set, and the other gets it afterwards.
 * Of two locks in a row each has its home in another PE. */
static void tested_by_its_owner(void) {
  static long two[2];
  int i;
  for (i = 0; i < 2 && pes > 1; ++i) {
    if (me == 0) {
      const long alone = (shmem_set_lock(&two[i]), shmem_long_atomic_fetch(&two[i], 0));
      shmem_barrier_all();
      shmem_long_wait_until(&two[i], SHMEM_CMP_NE, alone);
      CHECK(shmem_test_lock(&two[i]) == 1);
      shmem_clear_lock(&two[i]);
    } else {
      shmem_barrier_all();
      shmem_set_lock(&two[i]);
      shmem_clear_lock(&two[i]);
    }
  }
  shmem_barrier_all();
}

/* Active sets of all PEs, of the even ones, and of one. */
static void check_active_set(int start, int log_stride, int size) {
  static long p_sync[SHMEM_SYNC_SIZE];
  static long source[64];
  static long dest[64];
  static long wrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE > 8 ? SHMEM_REDUCE_MIN_WRKDATA_SIZE : 8];
  static double _Complex complex_source;
  static double _Complex complex_dest;
  static double _Complex complex_wrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE > 1 ? 8 : 1];
  const int mine = (me - start) >> log_stride;
  int i;
  for (i = 0; i < SHMEM_SYNC_SIZE; ++i) p_sync[i] = SHMEM_SYNC_VALUE;
  for (i = 0; i < 64; ++i) source[i] = mine + 1;
  memset(dest, 0, sizeof dest);
  complex_source = mine + 1;
  shmem_barrier_all();
  if (me < start || (me - start) % (1 << log_stride) != 0 || mine >= size) {
    shmem_barrier_all();
    return;
  }
  shmem_barrier(start, log_stride, size, p_sync);
  shmem_sync(start, log_stride, size, p_sync);
  shmem_broadcast64(dest, source, 2, size - 1, start, log_stride, size, p_sync);
  CHECK(dest[0] == (mine == size - 1 ? 0 : size) && dest[2] == 0);
  shmem_collect64(dest, source, (size_t)(1 + mine % 2), start, log_stride, size, p_sync);
  for (i = 0; i < size; ++i) CHECK(dest[i + i / 2] == i + 1);
  shmem_fcollect64(dest, source, 1, start, log_stride, size, p_sync);
  for (i = 0; i < size; ++i) CHECK(dest[i] == i + 1);
  shmem_fcollect32(dest, source, 2, start, log_stride, size, p_sync);
  for (i = 0; i < size; ++i) CHECK(dest[i] == i + 1);
  shmem_alltoall64(dest, source, 1, start, log_stride, size, p_sync);
  for (i = 0; i < size; ++i) CHECK(dest[i] == i + 1);
  shmem_alltoalls64(dest, source, 2, 2, 1, start, log_stride, size, p_sync);
  for (i = 0; i < size; ++i) CHECK(dest[2 * i] == i + 1);
  shmem_long_sum_to_all(dest, source, 3, start, log_stride, size, wrk, p_sync);
  CHECK(dest[0] == (long)size * (size + 1) / 2 && dest[2] == dest[0]);
  shmem_long_max_to_all(dest, source, 1, start, log_stride, size, wrk, p_sync);
  CHECK(dest[0] == size);
  shmem_long_min_to_all(dest, source, 1, start, log_stride, size, wrk, p_sync);
  CHECK(dest[0] == 1);
  shmem_long_and_to_all(dest, source, 1, start, log_stride, size, wrk, p_sync);
  CHECK(dest[0] == (size > 1 ? 0 : 1));
  shmem_complexd_sum_to_all(&complex_dest, &complex_source, 1, start, log_stride, size, complex_wrk,
                            p_sync);
  CHECK(complex_dest == (double)size * (size + 1) / 2);
  for (i = 0; i < SHMEM_SYNC_SIZE; ++i) CHECK(p_sync[i] == SHMEM_SYNC_VALUE);
  shmem_barrier_all();
}

static void active_sets(void) {
  int round;
  for (round = 0; round < 2; ++round) { /* the second time, the sets are known */
    check_active_set(0, 0, pes);
    check_active_set(0, 1, (pes + 1) / 2);
    check_active_set(pes - 1, 0, 1);
    if (pes > 2) check_active_set(1, 0, pes - 1);
  }
}

/* Names without a type are the forms for long, below C11. */
static void old_names(void) {
  static long word;
  static int narrow;
  const int right = (me + 1) % pes;
  word = narrow = 0;
  shmem_barrier_all();
  CHECK(shmem_swap(&word, 10, right) == 0 && shmem_cswap(&word, 10, 20, right) == 10);
  CHECK(shmem_fadd(&word, 5, right) == 20 && shmem_finc(&word, right) == 25);
  shmem_add(&word, 3, right);
  shmem_inc(&word, right);
  CHECK(shmem_long_mswap(&word, 0xf0, 0x4f, right) == 30);
  CHECK(shmem_int_mswap(&narrow, -1, -2, right) == 0);
  CHECK(shmem_int_mswap(&narrow, 1, 0xff, right) == -2);
  shmem_barrier_all();
  CHECK(word == 0x4e && narrow == -1);
  /* All PEs at a word of PE 0, each at bits of its own. */
  CHECK(pes < 16);
  shmem_barrier_all();
  if (me == 0) word = 0;
  shmem_barrier_all();
  CHECK((shmem_long_mswap(&word, 7L << (3 * me), 5L << (3 * me), 0) >> (3 * me)) % 8 == 0);
  shmem_barrier_all();
  CHECK(me != 0 || word == (long)((5 * ((1ULL << (3 * pes)) - 1)) / 7));
  shmem_barrier_all();
}

int main(void) {
  int is = 1;
  int round;
  shmem_query_initialized(&is);
  if (is != 0) return 1;
  for (round = 0; round < 2; ++round) { /* OpenSHMEM may be initialised again */
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    set_here[1] = 2;
    memset(of_threads, 0, sizeof of_threads);
    set_up();
    heap();
    full_heap();
    statics();
    teams();
    if (round == 0) sessions();
    if (round == 0) strides();
    quiets();
    threads();
    locks();
    tested_by_its_owner();
    active_sets();
    old_names();
    shmem_finalize();
    shmem_query_initialized(&is);
    if (is != 0) return 1;
  }
  return 0;
}
