/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures an OpenSHMEM, and beside it the bare machine: two PEs on one host, of which PE 0 prints
 * the median of its rounds. Compiles with every OpenSHMEM from 1.3 on.
 *
 *   mobius run -n 2 micro_shmem */

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRounds = 15, kLarge = 512 << 10, kMost = 64 << 10, kStrided = 128 };

enum { kSync = SHMEM_COLLECT_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE };
static long sync_area[2][kSync];
static long static_word;
static volatile long bare_word;
static long sink;

static int me;
static int peer;
static long* word;
static char* from;
static char* to;
static double* doubles;
static long* work;

/* The memory of one iput, and of the loop that does the same. */
static double* own_doubles;
static double* peer_doubles;

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

/* Prints the median time of a statement, which may use `i`. */
#define MEASURE(name, times, ...)                                         \
  do {                                                                    \
    double rounds_[kRounds];                                              \
    int round_;                                                           \
    long i;                                                               \
    for (round_ = 0; round_ < kRounds; ++round_) {                        \
      const double began_ = now_ns();                                     \
      for (i = 0; i < (times); ++i) {                                     \
        __VA_ARGS__;                                                      \
      }                                                                   \
      rounds_[round_] = (now_ns() - began_) / (double)(times);            \
    }                                                                     \
    qsort(rounds_, kRounds, sizeof *rounds_, compare);                    \
    if (me == 0) printf("%-50s %12.2f ns\n", name, rounds_[kRounds / 2]); \
  } while (0)

static void one_sided(void) {
  MEASURE("put of 8 bytes", 100000, shmem_long_p(word, i, peer));
  MEASURE("put of 8 bytes and quiet", 100000, shmem_long_p(word, i, peer); shmem_quiet());
  MEASURE("get of 8 bytes", 100000, sink += shmem_long_g(word, peer));
  MEASURE("fetch and add", 100000, sink += shmem_long_fadd(word, 1, peer));
  MEASURE("put of 8 bytes to a static variable, and quiet", 2000,
          shmem_long_p(&static_word, i, peer);
          shmem_quiet());
  MEASURE("put of 512 KiB and quiet", 100, shmem_putmem(to, from, kLarge, peer); shmem_quiet());
  MEASURE("iput of 128 doubles", 2000,
          shmem_double_iput(doubles, own_doubles, 2, 2, kStrided, peer));
}

static void bare(void) {
  long j;
  MEASURE("bare: put of 8 bytes and quiet", 100000, bare_word = i; __sync_synchronize());
  MEASURE("bare: get of 8 bytes", 100000, sink += bare_word);
  MEASURE("bare: fetch and add", 100000, sink += __sync_fetch_and_add(&bare_word, 1));
  MEASURE("bare: put of 512 KiB and quiet", 100, memcpy(to, from, kLarge);
          __asm__ volatile("" : : : "memory"));
  if (peer_doubles != NULL) {
    MEASURE("bare: iput of 128 doubles", 2000,
            for (j = 0; j < kStrided; ++j) peer_doubles[2 * j] = own_doubles[2 * j];
            __asm__ volatile("" : : : "memory"));
  }
}

/* Each call uses another sync_area than the one before. */
static void collective(const char* unit, size_t bytes, long times) {
  char name[64];
  const int pes = shmem_n_pes();
  snprintf(name, sizeof name, "broadcast of %s", unit);
  MEASURE(name, times, shmem_broadcast64(to, from, bytes / 8, 0, 0, 0, pes, sync_area[i % 2]));
  shmem_barrier_all();
  snprintf(name, sizeof name, "sum of %s", unit);
  MEASURE(name, times,
          shmem_long_sum_to_all((long*)(void*)to, (long*)(void*)from, (int)(bytes / 8), 0, 0, pes,
                                work, sync_area[i % 2]));
  shmem_barrier_all();
}

int main(void) {
  int j;
  shmem_init();
  me = shmem_my_pe();
  peer = (me + 1) % shmem_n_pes();
  for (j = 0; j < kSync; ++j) sync_area[0][j] = sync_area[1][j] = SHMEM_SYNC_VALUE;
  word = (long*)shmem_malloc(64);
  from = (char*)shmem_malloc(kLarge);
  to = (char*)shmem_malloc(kLarge);
  doubles = (double*)shmem_malloc(2 * kStrided * sizeof(double));
  work = (long*)shmem_malloc(kMost + SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(long));
  own_doubles = (double*)calloc(2 * kStrided, sizeof(double));
  if (!word || !from || !to || !doubles || !work || !own_doubles) return 1;
  memset(from, 1, kLarge);
  memset(to, 0, kLarge);
  *word = 0;
  peer_doubles = (double*)shmem_ptr(doubles, peer);
  shmem_barrier_all();
  if (me == 0) {
    one_sided();
    bare();
  }
  shmem_barrier_all();
  MEASURE("barrier of all", 5000, shmem_barrier_all());
  collective("8 bytes", 8, 5000);
  collective("64 KiB", kMost, 200);
  fflush(stdout);
  shmem_barrier_all();
  shmem_finalize();
  return sink == 42 ? 2 : 0;
}
