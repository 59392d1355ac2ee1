/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures windows of an MPI: two processes, of which the first prints the median of its rounds.
 * With an argument, the name of the memory, it measures one row alone: the one between hosts.
 *
 *   mpicc -O2 mpi.c -o windows
 *   mpiexec -n 2 ./windows
 *   mobius mpirun mpiexec -n 2 ./windows */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 9, kBlock = 512, kBlocks = 128, kLarge = 4 << 20, kPuts = 1000 };

static int me;
static int peer;
static char static_part[kBlock];
static char* data;
static MPI_Datatype blocks;

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a;
  const double right = *(const double*)b;
  return (left > right) - (left < right);
}

/* Prints the median time of a statement, which may use `i`. The number of times is chosen so that a
 * round takes some milliseconds: MPIs differ by factors of hundreds. */
#define MEASURE(memory, name, ...)                                                    \
  do {                                                                                \
    double rounds_[kRounds], took_ = 0;                                               \
    long times_ = 1, i;                                                               \
    for (;;) {                                                                        \
      const double began_ = MPI_Wtime();                                              \
      for (i = 0; i < times_; ++i) {                                                  \
        __VA_ARGS__;                                                                  \
      }                                                                               \
      took_ = MPI_Wtime() - began_;                                                   \
      if (both_) MPI_Bcast(&took_, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);                 \
      if (took_ > 3e-3 || times_ >= 1000000) break;                                   \
      times_ *= 4;                                                                    \
    }                                                                                 \
    for (int round_ = 0; round_ < kRounds; ++round_) {                                \
      const double began_ = MPI_Wtime();                                              \
      for (i = 0; i < times_; ++i) {                                                  \
        __VA_ARGS__;                                                                  \
      }                                                                               \
      rounds_[round_] = 1e9 * (MPI_Wtime() - began_) / (double)times_;                \
    }                                                                                 \
    qsort(rounds_, kRounds, sizeof *rounds_, compare);                                \
    if (me == 0) printf("%s: %-40s %14.2f ns\n", memory, name, rounds_[kRounds / 2]); \
    fflush(stdout);                                                                   \
  } while (0)

/* What the first process does alone, in an epoch in which it has locked all. */
static void origin(const char* memory, MPI_Win win, int bytes) {
  const int both_ = 0;
  long value = 1, old = 0;
  MPI_Win_lock_all(0, win);
  MEASURE(memory, "put of 8 bytes, flush", MPI_Put(&i, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win);
          MPI_Win_flush(peer, win));
  MEASURE(memory, "get of 8 bytes, flush", MPI_Get(&value, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win);
          MPI_Win_flush(peer, win));
  MEASURE(memory, "fetch and add, flush",
          MPI_Fetch_and_op(&value, &old, MPI_LONG, peer, 0, MPI_SUM, win);
          MPI_Win_flush(peer, win));
  if (bytes >= kLarge) {
    MPI_Request request;
    const int solid = kBlock * kBlocks;
    MEASURE(memory, "put with request, wait",
            MPI_Rput(&i, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE));
    MEASURE(memory, "put of 64 KiB, flush",
            MPI_Put(data, solid, MPI_BYTE, peer, 0, solid, MPI_BYTE, win);
            MPI_Win_flush(peer, win));
    MEASURE(memory, "put of 128 blocks of 512 bytes, flush",
            MPI_Put(data, 1, blocks, peer, 0, 1, blocks, win);
            MPI_Win_flush(peer, win));
    MEASURE(memory, "accumulate of 8,192 doubles, flush",
            MPI_Accumulate(data, 8192, MPI_DOUBLE, peer, 0, 8192, MPI_DOUBLE, MPI_SUM, win);
            MPI_Win_flush(peer, win));
    MEASURE(memory, "put of 4 MiB, flush",
            MPI_Put(data, kLarge, MPI_BYTE, peer, 0, kLarge, MPI_BYTE, win);
            MPI_Win_flush(peer, win));
  }
  MPI_Win_unlock_all(win);
  MEASURE(memory, "lock, put of 8 bytes, unlock", MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win);
          MPI_Put(&i, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win); MPI_Win_unlock(peer, win));
}

/* What both do at once. */
static void together(const char* memory, MPI_Win win) {
  const int both_ = 1;
  MPI_Group all, other;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &peer, &other);
  MPI_Win_fence(0, win);
  MEASURE(memory, "put of 8 bytes, fence", MPI_Put(&i, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win);
          MPI_Win_fence(0, win));
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MEASURE(memory, "post, start, put of 8 bytes, complete, wait", MPI_Win_post(other, 0, win);
          MPI_Win_start(other, 0, win); MPI_Put(&i, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win);
          MPI_Win_complete(win); MPI_Win_wait(win));
  MPI_Group_free(&other);
  MPI_Group_free(&all);
}

static void many_puts(const char* memory, MPI_Win win) {
  const int both_ = 1;
  MPI_Win_fence(0, win);
  MEASURE(
      memory, "1,000 puts of 8 bytes, fence", for (long j = 0; j < kPuts; ++j) {
        MPI_Put(data + 8 * j, 8, MPI_BYTE, peer, j * 16, 8, MPI_BYTE, win);
      } MPI_Win_fence(0, win));
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void measure(const char* memory, void* part, int bytes) {
  MPI_Win win;
  MPI_Win_create(part, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  if (me == 0) origin(memory, win, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
}

/* Windows that are made and freed again and again. */
static void lives(void* part) {
  const int both_ = 1;
  MPI_Win win;
  void* own;
  MEASURE("static", "window of 512 bytes, made and freed",
          MPI_Win_create(static_part, kBlock, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
          MPI_Win_free(&win));
  MEASURE("malloc", "window of 4 MiB, made and freed",
          MPI_Win_create(part, kLarge, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
          MPI_Win_free(&win));
  MEASURE("allocated", "window of 512 bytes, made and freed",
          MPI_Win_allocate(kBlock, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
          MPI_Win_free(&win));
  MEASURE("allocated", "window of 4 MiB, made and freed",
          MPI_Win_allocate(kLarge, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
          MPI_Win_free(&win));
  MEASURE("allocated", "window of 4 MiB, made, written and freed",
          MPI_Win_allocate(kLarge, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
          memset(own, 1, kLarge); MPI_Win_free(&win));
  MEASURE("shared", "window of 4 MiB, made and freed",
          MPI_Win_allocate_shared(kLarge, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
          MPI_Win_free(&win));
  MEASURE("dynamic", "window made and freed",
          MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
          MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  char stack_part[kBlock] = {0};
  void* part;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  peer = 1 - me;
  data = calloc(kLarge, 1);
  MPI_Type_vector(kBlocks, kBlock, 2 * kBlock, MPI_BYTE, &blocks);
  MPI_Type_commit(&blocks);
  MPI_Win_allocate(kLarge, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  memset(part, 0, kLarge);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1) {
    many_puts(argv[1], win);
  } else {
    if (me == 0) origin("allocated", win, kLarge);
    MPI_Barrier(MPI_COMM_WORLD);
    together("allocated", win);
  }
  MPI_Win_free(&win);
  if (argc <= 1) {
    char* made = calloc(kLarge, 1);
    measure("malloc", made, kLarge);
    measure("static", static_part, kBlock);
    measure("stack", stack_part, kBlock);
    lives(made);
    free(made);
  }
  MPI_Type_free(&blocks);
  free(data);
  MPI_Finalize();
  return 0;
}
