/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures the run-time library of UPC beside the native calls that it stands on: two threads on
 * one host, of which thread 0 prints the medians of its rounds.
 *
 *   mobius run -n 2 micro_upc */

#include <mobius/mobius.h>

#include <mobius_upc/runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <upc.h>
#include <upc_atomic.h>
#include <upc_collective.h>

enum { kRounds = 15, kWords = 1 << 20, kMost = 1 << 20 };

static uint64_t table; /* shared long table[kWords * THREADS]; */
static uint64_t sum;
static const mob_upc_object_t objects[] = {
    {"table", &table, sizeof(long), 1, kWords, MOB_UPC_TIMES_THREADS, 0, NULL, 0, "upc.c"},
    {"sum", &sum, sizeof(long), 1, 1, MOB_UPC_TIMES_THREADS, 0, NULL, 0, "upc.c"},
};
static mob_upc_unit_t unit = {MOB_UPC_UNIT_VERSION, 0, "upc.c", objects, 2, NULL, NULL};
__attribute__((constructor)) static void join(void) { mob_upc_register(&unit); }

static volatile long sink;
static char buffer[kMost];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a;
  const double right = *(const double*)b;
  return (left > right) - (left < right);
}

/* Prints the median times of a native statement and of one in UPC, which may use `i`, and the
 * median ratio of their rounds. */
#define PAIR(name, times, native, upc)                          \
  do {                                                          \
    double natives_[kRounds], upcs_[kRounds], ratios_[kRounds]; \
    int round_;                                                 \
    uint64_t i;                                                 \
    for (round_ = 0; round_ < kRounds; ++round_) {              \
      double began_ = now_ns();                                 \
      for (i = 0; i < (times); ++i) native;                     \
      natives_[round_] = (now_ns() - began_) / (double)(times); \
      began_ = now_ns();                                        \
      for (i = 0; i < (times); ++i) upc;                        \
      upcs_[round_] = (now_ns() - began_) / (double)(times);    \
      ratios_[round_] = upcs_[round_] / natives_[round_];       \
    }                                                           \
    print(name, natives_, upcs_, ratios_);                      \
  } while (0)

static double median(double* values) {
  qsort(values, kRounds, sizeof *values, compare);
  return values[kRounds / 2];
}

static void print(const char* name, double* natives, double* upcs, double* ratios) {
  if (mob_upc_mythread() != 0) return;
  printf("%-44s %12.2f ns %12.2f ns  ratio %.2f\n", name, median(natives), median(upcs),
         median(ratios));
  fflush(stdout);
}

/* Not too simple for the compiler, and the same for all. */
static uint64_t step(uint64_t x) { return (x << 1) ^ ((int64_t)x < 0 ? 7u : 0u); }

/* The words of another thread, one after the other. */
static void words(int peer) {
  const mob_upc_ptr_t there = mob_upc_pointer(table, (uint32_t)peer, 0);
  char* const owners = (char*)mob_upc_addrfield(there);
  uint64_t value = 0;
  long total = 0;
#define AT mob_upc_add_indefinite(there, (int64_t)i, 8)
  PAIR(
      "relaxed read; mob_get8", kWords,
      {
        mob_get8(peer, owners + 8 * i, &value);
        total += (long)value;
      },
      total += mob_upc_get_long(AT));
  PAIR("relaxed write; mob_put8", kWords, mob_put8(peer, owners + 8 * i, i),
       mob_upc_put_long(AT, (long)i));
  PAIR(
      "strict read; mob_flush_all, mob_get8", kWords,
      {
        mob_flush_all();
        mob_get8(peer, owners + 8 * i, &value);
        total += (long)value;
      },
      total += mob_upc_get_strict_long(AT));
  PAIR(
      "strict write; mob_put8, mob_flush_all", kWords,
      {
        mob_put8(peer, owners + 8 * i, i);
        mob_flush_all();
      },
      mob_upc_put_strict_long(AT, (long)i));
#undef AT
  sink = total;
}

/* GUPS: a table over all threads, cyclic. */
static void random_words(void) {
  const uint64_t threads = (uint64_t)mob_upc_threads();
  const uint64_t all = (uint64_t)kWords * threads;
  char* owners[64] = {NULL};
  uint64_t random = 1;
  uint64_t value = 0;
  int k;
  if (threads > 64) return;
  for (k = 0; k < mob_upc_threads(); ++k) {
    owners[k] = (char*)mob_upc_addrfield(mob_upc_pointer(table, (uint32_t)k, 0));
  }
  PAIR(
      "update at random; mob_get8, mob_put8", kWords,
      {
        random = step(random);
        const uint64_t index = random % all;
        const mob_rank_t rank = (mob_rank_t)(index % threads);
        char* const at = owners[rank] + 8 * (index / threads);
        mob_get8(rank, at, &value);
        mob_put8(rank, at, value ^ random);
      },
      {
        random = step(random);
        const mob_upc_ptr_t p = mob_upc_element_cyclic(table, random % all, 8);
        mob_upc_put_long(p, mob_upc_get_long(p) ^ (long)random);
      });
}

static void copies(int peer) {
  static const size_t sizes[] = {8, 64, 1024, 16 << 10, 1 << 20};
  static const char* const units[] = {"8 bytes", "64 bytes", "1 KiB", "16 KiB", "1 MiB"};
  const mob_upc_ptr_t there = mob_upc_pointer(table, (uint32_t)peer, 0);
  void* const owners = (void*)mob_upc_addrfield(there);
  size_t k;
  char name[64];
  for (k = 0; k < sizeof sizes / sizeof *sizes; ++k) {
    const size_t bytes = sizes[k];
    const uint64_t times = bytes > 10000 ? 200 : 20000;
    snprintf(name, sizeof name, "upc_memget; mob_get of %s", units[k]);
    PAIR(name, times, mob_get(peer, owners, buffer, bytes), upc_memget(buffer, there, bytes));
    snprintf(name, sizeof name, "upc_memput; mob_put of %s", units[k]);
    PAIR(name, times, mob_put(peer, owners, buffer, bytes), upc_memput(there, buffer, bytes));
  }
}

static void atomics(int peer, mob_upc_ptr_t domain) {
  const mob_upc_ptr_t there = mob_upc_pointer(sum, (uint32_t)peer, 0);
  char* const owners = (char*)mob_upc_addrfield(there);
  const long one = 1;
  long before = 0;
  uint64_t old = 0;
  PAIR("upc_atomic_relaxed UPC_ADD; mob_fetch_add8", 20000, mob_fetch_add8(peer, owners, 1, &old),
       upc_atomic_relaxed(domain, &before, UPC_ADD, there, &one, NULL));
}

/* All threads do these. */
static void together(mob_upc_ptr_t lock, mob_mutexes_t mutexes) {
  const mob_upc_ptr_t array = mob_upc_pointer(sum, 0, 0);
  const mob_upc_ptr_t target = mob_upc_pointer(table, 0, 0);
  long mine = 1;
  long all = 0;
  PAIR("upc_barrier; mob_barrier", 500, mob_barrier(), mob_upc_barrier(NULL));
  PAIR("upc_barrier with a value; mob_barrier", 500, mob_barrier(),
       mob_upc_barrier_value((int)i, NULL));
  PAIR("upc_all_reduceL of one each; mob_allreduce", 200,
       mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT64, &mine, &all, 1),
       upc_all_reduceL(target, array, UPC_ADD, (size_t)mob_upc_threads(), 1, NULL, 0));
  PAIR(
      "upc_lock, upc_unlock, wanted by all; mob_mutex_lock", 2000,
      {
        mob_mutex_lock(mutexes, 0, 0, NULL);
        mob_mutex_unlock(mutexes, 0, 0);
      },
      {
        upc_lock(lock);
        upc_unlock(lock);
      });
}

static void alone(mob_upc_ptr_t lock, mob_mutexes_t mutexes) {
  void* block = NULL;
  PAIR(
      "upc_lock, upc_unlock, free; mob_mutex_lock", 20000,
      {
        mob_mutex_lock(mutexes, 0, 0, NULL);
        mob_mutex_unlock(mutexes, 0, 0);
      },
      {
        upc_lock(lock);
        upc_unlock(lock);
      });
  PAIR(
      "upc_alloc, upc_free; mob_local_alloc of 100 bytes", 5000,
      {
        mob_local_alloc(100, 64, &block);
        mob_local_free(block);
      },
      upc_free(upc_alloc(100)));
}

MOB_UPC_API int mob_upc_main(void);
int mob_upc_main(void) {
  const int peer = mob_upc_threads() - 1;
  const mob_upc_ptr_t domain = upc_all_atomicdomain_alloc(UPC_LONG, UPC_ADD, 0);
  const mob_upc_ptr_t lock = upc_all_lock_alloc();
  mob_mutexes_t mutexes;
  if (mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes) != MOB_OK) return 1;
  if (mob_upc_mythread() == 0) {
    words(peer);
    random_words();
    copies(peer);
    atomics(peer, domain);
    alone(lock, mutexes);
  }
  mob_upc_barrier(NULL);
  together(lock, mutexes);
  return 0;
}
