/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures an OpenSHMEM and, by turns, the bare machine in the same memory: two PEs on one host, of
 * which PE 0 prints the median of its rounds. Compiles with every OpenSHMEM from 1.3 on.
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
static double* own_doubles;

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

/* The time of `times_` runs of a statement, which may use `i`. */
#define TIME(result, ...)                          \
  do {                                             \
    const double began_ = now_ns();                \
    for (i = 0; i < times_; ++i) {                 \
      __VA_ARGS__;                                 \
    }                                              \
    result = (now_ns() - began_) / (double)times_; \
  } while (0)

static void print_median(const char* prefix, const char* name, double* rounds) {
  qsort(rounds, kRounds, sizeof *rounds, compare);
  if (me == 0)
    printf("%s%-*s %12.2f ns\n", prefix, 50 - (int)strlen(prefix), name, rounds[kRounds / 2]);
}

/* Prints the median time of a statement. */
#define MEASURE(name, most_times, ...)                                               \
  do {                                                                               \
    const long times_ = ((most_times) + divisor - 1) / divisor;                      \
    double rounds_[kRounds];                                                         \
    int round_;                                                                      \
    long i;                                                                          \
    for (round_ = 0; round_ < kRounds; ++round_) TIME(rounds_[round_], __VA_ARGS__); \
    print_median("", name, rounds_);                                                 \
  } while (0)

/* The same, and of what the bare machine does, by turns; `has_bare` says whether it can. The first
 * round warms up. */
#define MEASURE_BESIDE(name, most_times, has_bare, statement, ...) \
  do {                                                             \
    const long times_ = ((most_times) + divisor - 1) / divisor;    \
    double rounds_[kRounds];                                       \
    double bare_[kRounds];                                         \
    int round_;                                                    \
    long i;                                                        \
    for (round_ = -1; round_ < kRounds; ++round_) {                \
      double* const at_ = &rounds_[round_ < 0 ? 0 : round_];       \
      double* const bare_at_ = &bare_[round_ < 0 ? 0 : round_];    \
      TIME(*at_, statement);                                       \
      if (has_bare) TIME(*bare_at_, __VA_ARGS__);                  \
    }                                                              \
    print_median("", name, rounds_);                               \
    if (has_bare) print_median("bare: ", name, bare_);             \
  } while (0)

#define COMPILER_FENCE() __asm__ volatile("" : : : "memory")

static void one_sided(void) {
  volatile long* const there = (long*)shmem_ptr(word, peer);
  char* const peer_to = (char*)shmem_ptr(to, peer);
  const char* const peer_from = (const char*)shmem_ptr(from, peer);
  double* const peer_doubles = (double*)shmem_ptr(doubles, peer);
  const int shares = there && peer_to && peer_from && peer_doubles;
  long j;
  MEASURE("put of 8 bytes", 100000, shmem_long_p(word, i, peer));
  MEASURE_BESIDE("put of 8 bytes and quiet", 100000, shares, shmem_long_p(word, i, peer);
                 shmem_quiet(), *there = i; __sync_synchronize());
  MEASURE_BESIDE("get of 8 bytes", 100000, shares, sink += shmem_long_g(word, peer),
                 sink += *there);
  MEASURE_BESIDE("fetch and add", 100000, shares, sink += shmem_long_fadd(word, 1, peer),
                 sink += __sync_fetch_and_add(there, 1));
  MEASURE("put of 8 bytes to a static variable, and quiet", 2000,
          shmem_long_p(&static_word, i, peer);
          shmem_quiet());
  MEASURE_BESIDE("put of 512 KiB and quiet", 500, shares, shmem_putmem(to, from, kLarge, peer);
                 shmem_quiet(), memcpy(peer_to, from, kLarge); __sync_synchronize());
  MEASURE_BESIDE("get of 512 KiB", 500, shares, shmem_getmem(to, from, kLarge, peer),
                 memcpy(to, peer_from, kLarge);
                 COMPILER_FENCE());
  MEASURE_BESIDE("iput of 128 doubles", 2000, shares,
                 shmem_double_iput(doubles, own_doubles, 2, 2, kStrided, peer),
                 for (j = 0; j < kStrided; ++j) peer_doubles[2 * j] = own_doubles[2 * j];
                 COMPILER_FENCE());
}

/* Both PEs: a word travels there and back, half the time of that; and a barrier, beside two flags
 * of which each PE writes its own and waits for the other's. `turn` counts on. */
static void synchronisation(void) {
  long* const mine = flags + kLine / 8 * me;
  long* const other = flags + kLine / 8 * peer;
  volatile long* const there = (long*)shmem_ptr(mine, peer);
  volatile long* const here = other;
  volatile long* const seen = (long*)shmem_ptr(other, peer);
  const int shares = there && seen;
  long turn = 0;
  MEASURE_BESIDE("put of 8 bytes, and the peer waits for it", 5000, shares,
                 if ((i + me) % 2 == 0) shmem_long_p(mine, turn + i + 1, peer);
                 else shmem_long_wait_until(other, SHMEM_CMP_GE, turn + i + 1);
                 if (i == times_ - 1) turn += times_, if ((i + me) % 2 == 0)* there = turn + i + 1;
                 else while (*here < turn + i + 1); if (i == times_ - 1) turn += times_);
  shmem_barrier_all();
  MEASURE_BESIDE(
      "barrier of all", 5000, shares, shmem_barrier_all(), *(volatile long*)mine = turn + i + 1;
      __sync_synchronize(); while (*seen < turn + i + 1); if (i == times_ - 1) turn += times_);
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
  if (shmem_n_pes() != 2) {
    /* So does a launcher that does not know this OpenSHMEM: it starts jobs of one PE. */
    if (me == 0) fprintf(stderr, "micro_shmem: a job of %d PEs; this needs two\n", shmem_n_pes());
    shmem_global_exit(2);
  }
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
  shmem_barrier_all();
  if (me == 0) one_sided();
  shmem_barrier_all();
  synchronisation();
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
