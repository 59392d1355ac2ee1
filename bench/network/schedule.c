/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The experiments of the scheduler (docs/scheduler.md) between two processes of two hosts: rank 0
 * measures, rank 1 serves. With -DUSE_MPI the same with an MPI library's windows:
 *
 *   mpicc -O2 -DUSE_MPI bench/network/schedule.c -o schedule_mpi
 *
 * The policies take turns, in each round another first and a sixth of the repetitions each time, so
 * that what a launch or a moment is like they have in common; with MOBIUS_SCHEDULE set there is
 * only that one. Prints one line per experiment, size and policy: name, bytes or pieces, policy,
 * median, least, in microseconds. "tcp" is 8 bytes there and back over a socket of its own between
 * the same hosts, both ends polling.
 *
 * Arguments: repetitions, and the experiments' names, or NAME:SIZE (all).
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beside_socket.h"

#define BYTES ((size_t)40 << 20)
#define HALF (BYTES / 2)

/* All policies, and the first a second time: what differs between the two is noise. */
#define POLICIES 6

static char* local;  /* BYTES of ours; gets go to the second half */
static char* window; /* BYTES of ours that the other process reaches */

#ifdef USE_MPI
#include <mpi.h>

static MPI_Win win;
static MPI_Group peer;

static void setup(void) {
  CHECK(MPI_Init(NULL, NULL));
  CHECK(MPI_Win_allocate((MPI_Aint)BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
  memset(window, 0, BYTES);
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
/* Libraries without a thread of their own serve others only then. */
static void look(void) {
  int there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}
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
static void lock(void) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win); }
static void unlock(void) { MPI_Win_unlock(1, win); }
static int policies(void) { return 1; }
static const char* use_policy(int policy) { return policy == 0 ? "-" : NULL; }
static void finish(void) { MPI_Finalize(); }
#else
#include <mobius/mobius.h>

static mob_mem_t mem;
static mob_epoch_t epoch;
static mob_access_t access_object;
static char* there;

static void setup(void) {
  void* address;
  CHECK(mob_init());
  CHECK(mob_mem_alloc(BYTES, &mem));
  CHECK(mob_mem_address(mem, 1, 0, &address));
  there = address;
  window = mob_mem_local(mem);
  CHECK(mob_epoch_create(MOB_TEAM_WORLD, &epoch));
  CHECK(mob_access_create(MOB_TEAM_WORLD, &access_object));
}
static int rank(void) { return mob_rank(); }
static void barrier(void) { CHECK(mob_barrier()); }
static void look(void) { CHECK(mob_poll()); }
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
static void lock(void) { CHECK(mob_access_lock_nbi(access_object, 1, MOB_EXCLUSIVE)); }
static void unlock(void) { CHECK(mob_access_unlock(access_object, 1)); }
static int policies(void) { return getenv("MOBIUS_SCHEDULE") != NULL ? 1 : POLICIES; }
static const char* use_policy(int policy) {
  static const char* const kNames[POLICIES] = {"adaptive",   "fifo",      "interleave",
                                               "gets-first", "aggregate", "adaptive-2"};
  if (policies() == 1) return getenv("MOBIUS_SCHEDULE");
  CHECK(mob_mem_schedule(mem, (mob_schedule_t)(MOB_SCHEDULE_ADAPTIVE + policy % 5)));
  return kNames[policy];
}
static void finish(void) {
  mob_access_free(access_object);
  mob_epoch_free(epoch);
  mob_mem_free(mem);
  mob_finalize();
}
#endif

static int tcp = -1;

static void read_window(void* to, size_t n) {
  open_access();
  get_now(to, 0, n);
  close_access();
}
static void tcp_say(void) {
  const uint64_t word = 1;
  tcp_send(tcp, (const char*)&word, sizeof word);
}
static void tcp_hear(void) {
  uint64_t word = 0;
  tcp_receive(tcp, (char*)&word, sizeof word, MSG_DONTWAIT);
}
static void tcp_serve(void) {
  tcp_hear();
  tcp_say();
}
static void tcp_round_trip(size_t n) {
  (void)n;
  tcp_say();
  tcp_hear();
}

/* 1: 16 puts, then 16 gets. */
static void mixed(size_t n) {
  for (size_t i = 0; i < 16; ++i) put(i * n, local + i * n, n);
  for (size_t i = 0; i < 16; ++i) get(local + HALF + i * n, HALF + i * n, n);
  flush();
}
/* 2: one put, then one get, until both are complete; or until the get is there. */
static void get_behind_put(size_t n) {
  put(0, local, n);
  get(local + HALF, HALF, n);
  flush();
}
static void get_behind_put_there(size_t n) {
  put(0, local, n);
  get_now(local + HALF, HALF, n);
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
static void put_unlock(size_t n) {
  lock();
  put(0, local, n);
  unlock();
}
static void get_unlock(size_t n) {
  lock();
  get(local + HALF, HALF, n);
  unlock();
}
/* The same once there is access, which took a round trip by itself. */
static void put_then_unlock(size_t n) {
  put(0, local, n);
  unlock();
}
static void get_then_unlock(size_t n) {
  get(local + HALF, HALF, n);
  unlock();
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

/* What stands around the repetitions of an experiment. */
enum around { kAccess, kEpochs, kLocks, kLocked, kTcp };

static const struct experiment {
  const char* name;
  void (*run)(size_t);
  enum around around;
  size_t sizes[8];
} kExperiments[] = {
    {"tcp", tcp_round_trip, kTcp, {8}},
    {"round-trip", round_trip, kAccess, {1}},
    {"mixed-16-16", mixed, kAccess, {1024, 4096, 16384, 65536, 126976, 262144, 1048576}},
    {"get-behind-put", get_behind_put, kAccess, {1024, 16384, 65536, 126976, 1048576}},
    {"get-there", get_behind_put_there, kAccess, {1024, 16384, 65536, 126976, 1048576}},
    {"put-flush", put_flush, kAccess, {4, 1024, 8000, 65536}},
    {"put-complete", put_complete, kEpochs, {4, 1024, 8000, 65536}},
    {"get-complete", get_complete, kEpochs, {4, 1024, 8000, 65536}},
    {"put-unlock", put_unlock, kLocks, {4, 1024, 8000, 65536}},
    {"get-unlock", get_unlock, kLocks, {4, 1024, 8000, 65536}},
    {"put-then-unlock", put_then_unlock, kLocked, {4, 1024, 8000, 65536}},
    {"get-then-unlock", get_then_unlock, kLocked, {4, 1024, 8000, 65536}},
    {"pieces-of-1M", pieces, kAccess, {1, 16, 128, 1024}},
    {"put-8000", put_flush, kAccess, {8000}},
    {"scattered-8", scattered, kAccess, {1000}},
    {"random-epoch", random_epoch, kAccess, {64, 512}},
};

static void serve(enum around around) {
  if (around == kEpochs) epoch_serve();
  if (around == kTcp) tcp_serve();
}

/* Of each policy. Each begins with repetitions that do not count: an unlock of the policy before is
 * under way, or what it does is not what has been learnt (which answers have something to ride on).
 */
#define TURNS POLICIES

/* `times` has room for `repetitions` of every policy. */
static void measure(const struct experiment* which, size_t size, int repetitions, double* times) {
  const int policy_count = which->around == kTcp ? 1 : policies();
  barrier();
  if (which->around == kTcp) {
    tcp = tcp_open(&(const struct meeting){rank(), window, barrier, read_window, look});
  }
  if (rank() == 0 && which->around == kAccess) open_access();
  const int turn = repetitions / TURNS;
  for (int round = 0; round < TURNS; ++round) {
    for (int place = 0; place < policy_count; ++place) {
      const int policy = (place + round) % policy_count;
      if (rank() == 0) use_policy(policy);
      for (int i = -turn / 3 - 1; i < turn; ++i) {
        if (rank() != 0) {
          serve(which->around);
          continue;
        }
        if (which->around == kLocked) lock();
        const double begin = now_us();
        which->run(size);
        if (i >= 0) times[policy * repetitions + round * turn + i] = now_us() - begin;
        if (which->run == get_behind_put_there) flush();
      }
    }
  }
  if (rank() == 0 && which->around == kAccess) close_access();
  if (which->around == kTcp) close(tcp);
  barrier();
  for (int policy = 0; rank() == 0 && policy < policy_count; ++policy) {
    double* of_policy = times + policy * repetitions;
    qsort(of_policy, (size_t)repetitions, sizeof(double), compare_times);
    printf("%-16s %8zu %-10s %10.1f %10.1f\n", which->name, size,
           which->around == kTcp ? "-" : use_policy(policy), of_policy[repetitions / 2],
           of_policy[0]);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  const int wanted_repetitions = argc > 1 ? atoi(argv[1]) : 100;
  const int repetitions = (wanted_repetitions + TURNS - 1) / TURNS * TURNS;
  if (repetitions < 1) {
    fprintf(stderr, "'%s' is no number of repetitions; usage: %s [REPETITIONS [NAME...]]\n",
            argv[1], argv[0]);
    return 2;
  }
  local = malloc(BYTES);
  double* times = malloc(sizeof(double) * POLICIES * (size_t)repetitions);
  if (times == NULL || local == NULL) return 1;
  memset(local, 1, BYTES);
  setup();
  for (size_t e = 0; e < sizeof kExperiments / sizeof kExperiments[0]; ++e) {
    for (int s = 0; s < 8 && kExperiments[e].sizes[s] != 0; ++s) {
      const size_t size = kExperiments[e].sizes[s];
      char with_size[64];
      snprintf(with_size, sizeof with_size, "%s:%zu", kExperiments[e].name, size);
      int wanted = argc <= 2;
      for (int i = 2; i < argc; ++i) {
        wanted |= strcmp(argv[i], kExperiments[e].name) == 0 || strcmp(argv[i], with_size) == 0;
      }
      if (wanted) measure(&kExperiments[e], size, repetitions, times);
    }
  }
  finish();
  free(times);
  free(local);
  return 0;
}
