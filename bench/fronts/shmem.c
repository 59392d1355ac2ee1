/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures an OpenSHMEM, and beside it the bare machine: two PEs on one host, of which PE 0 prints
 * the median of its rounds. Compiles with every OpenSHMEM from 1.3 on.
 *
 *   mobius run -n 2 micro_shmem [DIVISOR]    repeats everything DIVISOR times less often
 *   mobius run -n 64 micro_shmem start       begins and ends */

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRounds = 15, kLarge = 512 << 10, kMost = 1 << 20, kStrided = 128, kLine = 64 };

enum { kSync = SHMEM_COLLECT_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE };
static long sync_area[2][kSync];
static long static_word;
static volatile long bare_word;
static long sink;

static int me;
static int peer;
static long divisor = 1;
static long* word;
static long* flags; /* [0]: written by PE 0; [kLine / 8]: written by PE 1 */
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
#define MEASURE(name, most_times, ...)                                    \
  do {                                                                    \
    const long times_ = ((most_times) + divisor - 1) / divisor;           \
    double rounds_[kRounds];                                              \
    int round_;                                                           \
    long i;                                                               \
    for (round_ = 0; round_ < kRounds; ++round_) {                        \
      const double began_ = now_ns();                                     \
      for (i = 0; i < times_; ++i) {                                      \
        __VA_ARGS__;                                                      \
      }                                                                   \
      rounds_[round_] = (now_ns() - began_) / (double)times_;             \
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

/* A word travels there and back: half the time of that. `turn` counts on. */
static void ping_pong(void) {
  long* const mine = flags + kLine / 8 * me;
  long* const other = flags + kLine / 8 * peer;
  long* const there = (long*)shmem_ptr(mine, peer);
  static volatile long* seen;
  long turn = 0;
  MEASURE("put of 8 bytes, and the peer waits for it", 5000,
          if ((i + me) % 2 == 0) shmem_long_p(mine, turn + i + 1, peer);
          else shmem_long_wait_until(other, SHMEM_CMP_GE, turn + i + 1);
          if (i == times_ - 1) turn += times_);
  shmem_barrier_all();
  mine[0] = 0;
  other[0] = 0;
  shmem_barrier_all();
  if (there == NULL) return;
  turn = 0;
  seen = other;
  MEASURE("bare: put of 8 bytes, and the peer waits for it", 5000,
          if ((i + me) % 2 == 0) * (volatile long*)there = turn + i + 1;
          else while (*seen < turn + i + 1); if (i == times_ - 1) turn += times_);
  shmem_barrier_all();
  mine[0] = 0;
  other[0] = 0;
  shmem_barrier_all();
  /* Two flags: each PE writes its own, and waits for the other's. */
  turn = 0;
  seen = (long*)shmem_ptr(other, peer);
  MEASURE("bare: barrier of all", 5000, *(volatile long*)mine = turn + i + 1; __sync_synchronize();
          while (*seen < turn + i + 1); if (i == times_ - 1) turn += times_);
  shmem_barrier_all();
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

int main(int argc, char** argv) {
  int j;
  shmem_init();
  if (argc > 1 && strcmp(argv[1], "start") == 0) {
    shmem_finalize();
    return 0;
  }
  if (argc > 1) divisor = atol(argv[1]) > 0 ? atol(argv[1]) : 1;
  me = shmem_my_pe();
  peer = (me + 1) % shmem_n_pes();
  for (j = 0; j < kSync; ++j) sync_area[0][j] = sync_area[1][j] = SHMEM_SYNC_VALUE;
  word = (long*)shmem_malloc(64);
  flags = (long*)shmem_malloc(2 * kLine);
  from = (char*)shmem_malloc(kMost);
  to = (char*)shmem_malloc(kMost);
  doubles = (double*)shmem_malloc(2 * kStrided * sizeof(double));
  work = (long*)shmem_malloc(kMost + SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(long));
  own_doubles = (double*)calloc(2 * kStrided, sizeof(double));
  if (!word || !flags || !from || !to || !doubles || !work || !own_doubles) return 1;
  memset(from, 1, kMost);
  memset(to, 0, kMost);
  memset(flags, 0, 2 * kLine);
  *word = 0;
  peer_doubles = (double*)shmem_ptr(doubles, peer);
  shmem_barrier_all();
  if (me == 0) {
    one_sided();
    bare();
  }
  shmem_barrier_all();
  MEASURE("barrier of all", 5000, shmem_barrier_all());
  ping_pong();
  collective("8 bytes", 8, 5000);
  collective("64 bytes", 64, 5000);
  collective("256 bytes", 256, 5000);
  collective("1 KiB", 1 << 10, 2000);
  collective("4 KiB", 4 << 10, 1000);
  collective("16 KiB", 16 << 10, 500);
  collective("64 KiB", 64 << 10, 200);
  collective("256 KiB", 256 << 10, 50);
  collective("1 MiB", kMost, 20);
  fflush(stdout);
  shmem_barrier_all();
  shmem_finalize();
  return sink == 42 ? 2 : 0;
}
