/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The experiments of the scheduler (docs/scheduler.md) between two processes of two hosts: rank 0
 * measures, rank 1 serves. With -DUSE_MPI the same with an MPI library's windows:
 *
 *   mpicc -O2 -DUSE_MPI bench/network/schedule.c -o schedule_mpi
 *
 * Prints one line per experiment and size: name, bytes or pieces, median, least, in microseconds.
 * MOBIUS_SCHEDULE chooses the policy. Arguments: repetitions, and the experiments' names (all).
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)40 << 20)
#define HALF (BYTES / 2)

static char* local; /* BYTES of ours; gets go to the second half */

static void check(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "%s failed: %d\n", what, status);
  exit(1);
}
#define CHECK(call) check((call), #call)

#ifdef USE_MPI
#include <mpi.h>

static MPI_Win win;
static MPI_Group peer;

static void setup(void) {
  void* base;
  CHECK(MPI_Init(NULL, NULL));
  CHECK(MPI_Win_allocate((MPI_Aint)BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  memset(base, 0, BYTES);
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Group world;
  int other = 1 - me;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &other, &peer);
}
static int rank(void) {
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  return me;
}
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void open_access(void) { MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win); }
static void close_access(void) { MPI_Win_unlock(1, win); }
static void put(size_t to, const void* from, size_t n) {
  MPI_Put(from, (int)n, MPI_BYTE, 1, (MPI_Aint)to, (int)n, MPI_BYTE, win);
}
static void get(void* to, size_t from, size_t n) {
  MPI_Get(to, (int)n, MPI_BYTE, 1, (MPI_Aint)from, (int)n, MPI_BYTE, win);
}
static void get_now(void* to, size_t from, size_t n) {
  get(to, from, n);
  MPI_Win_flush(1, win);
}
static void flush(void) { MPI_Win_flush(1, win); }
static void epoch_start(void) { MPI_Win_start(peer, 0, win); }
static void epoch_complete(void) { MPI_Win_complete(win); }
static void epoch_serve(void) {
  MPI_Win_post(peer, 0, win);
  MPI_Win_wait(win);
}
static void finish(void) { MPI_Finalize(); }
#else
#include <mobius/mobius.h>

static mob_mem_t mem;
static mob_epoch_t epoch;
static char* there;

static void setup(void) {
  void* address;
  CHECK(mob_init());
  CHECK(mob_mem_alloc(BYTES, &mem));
  CHECK(mob_mem_address(mem, 1, 0, &address));
  there = address;
  CHECK(mob_epoch_create(MOB_TEAM_WORLD, &epoch));
}
static int rank(void) { return mob_rank(); }
static void barrier(void) { CHECK(mob_barrier()); }
static void open_access(void) {}
static void close_access(void) { CHECK(mob_flush(1)); }
static void put(size_t to, const void* from, size_t n) {
  CHECK(mob_put_nbi(1, there + to, from, n));
}
static void get(void* to, size_t from, size_t n) { CHECK(mob_get_nbi(1, there + from, to, n)); }
static void get_now(void* to, size_t from, size_t n) { CHECK(mob_get(1, there + from, to, n)); }
static void flush(void) { CHECK(mob_flush(1)); }
static void epoch_start(void) {
  const mob_rank_t target = 1;
  CHECK(mob_epoch_start(epoch, &target, 1));
}
static void epoch_complete(void) { CHECK(mob_epoch_complete(epoch)); }
static void epoch_serve(void) {
  const mob_rank_t origin = 0;
  CHECK(mob_epoch_post(epoch, &origin, 1));
  CHECK(mob_epoch_wait(epoch));
}
static void finish(void) {
  mob_epoch_free(epoch);
  mob_mem_free(mem);
  mob_finalize();
}
#endif

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* 1: 16 puts, then 16 gets. */
static void mixed(size_t n) {
  for (size_t i = 0; i < 16; ++i) put(i * n, local + i * n, n);
  for (size_t i = 0; i < 16; ++i) get(local + HALF + i * n, HALF + i * n, n);
  flush();
}
/* 2: one put, then one get, whose arrival is what is waited for. */
static void get_behind_put(size_t n) {
  put(0, local, n);
  get(local + HALF, HALF, n);
  flush();
}
/* 3, 4: one operation and the synchronisation. */
static void put_flush(size_t n) {
  put(0, local, n);
  flush();
}
static void put_complete(size_t n) {
  epoch_start();
  put(0, local, n);
  epoch_complete();
}
static void get_complete(size_t n) {
  epoch_start();
  get(local + HALF, HALF, n);
  epoch_complete();
}
/* 5: pieces of one buffer of 1 MiB. */
static void pieces(size_t n) {
  const size_t bytes = ((size_t)1 << 20) / n;
  for (size_t i = 0; i < n; ++i) put(i * bytes, local + i * bytes, bytes);
  flush();
}
/* 6: puts of 8 bytes to scattered addresses; and one put of as many bytes. */
static void scattered(size_t n) {
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    put(state % 8192 * 64, local + 8 * i, 8);
  }
  flush();
}
/* 7: an epoch of random operations, the same each time. */
static void random_epoch(size_t n) {
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const size_t bytes = (size_t)1 << (state >> 8) % 14;
    const size_t place = (state >> 24) % (HALF - ((size_t)1 << 14));
    if ((state & 1) != 0) {
      put(place, local + place, bytes);
    } else {
      get(local + HALF + i * 8192, HALF + place, bytes);
    }
  }
  flush();
}
static void round_trip(size_t n) { get_now(local + HALF, HALF, n); }

static const struct {
  const char* name;
  void (*run)(size_t);
  int has_epoch;
  size_t sizes[8];
} kExperiments[] = {
    {"round-trip", round_trip, 0, {1}},
    {"mixed-16-16", mixed, 0, {1024, 16384, 65536, 262144, 1048576}},
    {"get-behind-put", get_behind_put, 0, {1024, 65536, 1048576}},
    {"put-flush", put_flush, 0, {4, 1024, 8000, 65536}},
    {"put-complete", put_complete, 1, {4, 1024, 65536}},
    {"get-complete", get_complete, 1, {4, 1024, 65536}},
    {"pieces-of-1M", pieces, 0, {1, 16, 128, 1024}},
    {"scattered-8", scattered, 0, {1000}},
    {"random-epoch", random_epoch, 0, {64, 512}},
};

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? atoi(argv[1]) : 100;
  double* times = malloc(sizeof(double) * (size_t)repetitions);
  local = malloc(BYTES);
  if (times == NULL || local == NULL || repetitions < 1) return 1;
  memset(local, 1, BYTES);
  setup();
  for (size_t e = 0; e < sizeof kExperiments / sizeof kExperiments[0]; ++e) {
    int wanted = argc <= 2;
    for (int i = 2; i < argc; ++i) wanted |= strcmp(argv[i], kExperiments[e].name) == 0;
    for (int s = 0; wanted && s < 8 && kExperiments[e].sizes[s] != 0; ++s) {
      const size_t size = kExperiments[e].sizes[s];
      const int has_epoch = kExperiments[e].has_epoch;
      barrier();
      if (rank() == 0 && !has_epoch) open_access();
      for (int i = -3; i < repetitions; ++i) {
        if (rank() != 0) {
          if (has_epoch) epoch_serve();
          continue;
        }
        const double begin = now_us();
        kExperiments[e].run(size);
        if (i >= 0) times[i] = now_us() - begin;
      }
      if (rank() == 0 && !has_epoch) close_access();
      barrier();
      if (rank() != 0) continue;
      qsort(times, (size_t)repetitions, sizeof(double), compare);
      printf("%-16s %8zu %10.1f %10.1f\n", kExperiments[e].name, size, times[repetitions / 2],
             times[0]);
      fflush(stdout);
    }
  }
  finish();
  free(times);
  free(local);
  return 0;
}
