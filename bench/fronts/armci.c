/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Measures the calls of ARMCI between two processes, for any libarmci: the same source is compiled
 * for this project's and for others. Paper 5's Table 1 (get compared with send and receive) and
 * figures 3 and 4 (get and accumulate, contiguous and strided), by size. Prints medians over
 * rounds, one JSON object per line.
 *
 *   mpicc -I…/include/armci armci.c -larmci -o armci      # with MPI beside it: also messages
 *   mpiexec -n 2 ./armci [ROUNDS]
 *
 * Compiled with ARMCI_NO_MPI, it measures ARMCI alone.
 */

#include <armci.h>
#ifndef ARMCI_NO_MPI
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MOST_BYTES = 1 << 20,
  STRIDE = 4096, /* distance of blocks of the strided patch at the target */
  BLOCKS = 128,
  MOST_ROUNDS = 1000
};

static int me, peer;
static char* there; /* the peer's memory */
static char* here;  /* ours, for transfers */
static double one = 1.0;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void barrier(void) { ARMCI_Barrier(); }

/* ---- the measured operations: each function does one, in rank 0, or in both if they must take
 * part */

static void put_fence(int bytes) {
  ARMCI_Put(here, there, bytes, peer);
  ARMCI_Fence(peer);
}
static void get(int bytes) { ARMCI_Get(there, here, bytes, peer); }
static void accumulate(int bytes) {
  ARMCI_Acc(ARMCI_ACC_DBL, &one, here, there, bytes, peer);
  ARMCI_Fence(peer);
}
/* A patch of BLOCKS blocks of `bytes` each. */
static void get_strided(int bytes) {
  int remote_stride = STRIDE, local_stride = bytes, count[2];
  count[0] = bytes;
  count[1] = BLOCKS;
  ARMCI_GetS(there, &remote_stride, here, &local_stride, count, 1, peer);
}
static void accumulate_strided(int bytes) {
  int remote_stride = STRIDE, local_stride = bytes, count[2];
  count[0] = bytes;
  count[1] = BLOCKS;
  ARMCI_AccS(ARMCI_ACC_DBL, &one, here, &local_stride, there, &remote_stride, count, 1, peer);
  ARMCI_Fence(peer);
}
static void fetch_add(int bytes) {
  long old;
  (void)bytes;
  ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, there, 1, peer);
}
#ifndef ARMCI_NO_MPI
/* There and back: half of the time counts. */
static void exchange(int bytes) {
  if (me == 0) MPI_Send(here, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
  MPI_Recv(here, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 1) MPI_Send(here, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
}
#endif

typedef struct {
  const char* name;
  void (*run)(int bytes);
  int least, most; /* bytes of a transfer, or of each block of a patch */
  int blocks;
  int both; /* both ranks run it, and each operation counts as two */
} kind_t;

static const kind_t kinds[] = {
    {"put+fence", put_fence, 8, 8, 1, 0},
    {"get", get, 8, MOST_BYTES, 1, 0},
    {"accumulate", accumulate, 8, MOST_BYTES, 1, 0},
    {"get strided", get_strided, 8, STRIDE / 2, BLOCKS, 0},
    {"accumulate strided", accumulate_strided, 8, STRIDE / 2, BLOCKS, 0},
    {"rmw", fetch_add, 8, 8, 1, 0},
#ifndef ARMCI_NO_MPI
    {"send/receive", exchange, 8, MOST_BYTES, 1, 1},
#endif
};

static int ascending(const void* a, const void* b) {
  double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static double measure(const kind_t* kind, int bytes, int rounds) {
  static double times[MOST_ROUNDS];
  long total = (long)bytes * kind->blocks;
  int repetitions = total < 2048 ? 200 : total < 65536 ? 40 : 4;
  int round, i;
  for (round = 0; round < rounds; round++) {
    double start;
    barrier();
    start = now_ns();
    if (me == 0 || kind->both) {
      for (i = 0; i < repetitions; i++) kind->run(bytes);
    }
    times[round] = (now_ns() - start) / repetitions / (kind->both ? 2 : 1);
    barrier();
  }
  qsort(times, (size_t)rounds, sizeof times[0], ascending);
  return times[rounds / 2];
}

int main(int argc, char** argv) {
  void* parts[2];
  int rounds = 31, size, bytes;
  size_t i;
#ifndef ARMCI_NO_MPI
  MPI_Init(&argc, &argv);
  ARMCI_Init();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
#else
  ARMCI_Init_args(&argc, &argv);
  {
    ARMCI_Group world;
    ARMCI_Group_get_world(&world);
    ARMCI_Group_rank(&world, &me);
    ARMCI_Group_size(&world, &size);
  }
#endif
  if (argc > 1) rounds = atoi(argv[1]);
  if (size != 2 || rounds < 1 || rounds > MOST_ROUNDS) {
    fprintf(stderr, "it wants two processes, and 1 to %d rounds\n", MOST_ROUNDS);
    ARMCI_Error("wrong arguments", 2);
  }
  peer = 1 - me;
  if (ARMCI_Malloc(parts, MOST_BYTES) != 0) ARMCI_Error("no memory", 1);
  there = parts[peer];
  here = ARMCI_Malloc_local(MOST_BYTES);
  if (here == NULL) ARMCI_Error("no memory", 1);
  memset(parts[me], 0, MOST_BYTES);
  memset(here, 0, MOST_BYTES);
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    for (bytes = kinds[i].least; bytes <= kinds[i].most; bytes *= 4) {
      double ns = measure(&kinds[i], bytes, rounds);
      if (me == 0) {
        printf("{\"operation\":\"%s\",\"bytes\":%d,\"blocks\":%d,\"ns\":%.1f}\n", kinds[i].name,
               bytes, kinds[i].blocks, ns);
        fflush(stdout);
      }
    }
  }
  ARMCI_Free_local(here);
  ARMCI_Free(parts[me]);
  ARMCI_Finalize();
#ifndef ARMCI_NO_MPI
  MPI_Finalize();
#endif
  return 0;
}
