/* SPDX-License-Identifier: BSD-3-Clause */

/* Two threads of each process, each with a window of its own over the same communicator. They fence
 * and free theirs in any order. Then each makes and frees windows over a communicator of its own.
 * At last they use one window: they lock different targets, and begin a fence's epoch, at once. */

#include <pthread.h>

#include "check.h"

enum { kThreads = 2, kFences = 200, kWindows = 5, kLocks = 300000, kEpochs = 50 };

static MPI_Win wins[kThreads];
static long* parts[kThreads];
static MPI_Comm comms[kThreads];
static pthread_barrier_t all_here;

static void* use(void* number) {
  const long me = (long)(size_t)number;
  MPI_Win* win = &wins[me];
  const int right = (check_rank + 1) % check_size;
  MPI(MPI_Win_fence(0, *win));
  for (long i = 1; i <= kFences; ++i) {
    const long value = 1000 * me + i;
    MPI(MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, *win));
    MPI(MPI_Win_fence(0, *win));
    CHECK(*parts[me] == value);
    MPI(MPI_Win_fence(0, *win));
  }
  MPI(MPI_Win_free(win));
  return NULL;
}

static void* make_and_free(void* number) {
  const long me = (long)(size_t)number;
  const int right = (check_rank + 1) % check_size;
  for (long i = 0; i < kWindows; ++i) {
    long part = -1;
    MPI_Win win;
    MPI(MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, comms[me], &win));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(&i, 1, MPI_LONG, right, 0, 1, MPI_LONG, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(part == i);
    MPI(MPI_Win_free(&win));
  }
  return NULL;
}

static void* lock_and_unlock(void* number) {
  const int target = (int)(size_t)number % check_size;
  const long value = 1;
  for (int i = 0; i < kLocks; ++i) {
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, wins[0]));
    if (i % 1000 == 0) {
      MPI(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, wins[0]));
    }
    MPI(MPI_Win_unlock(target, wins[0]));
  }
  return NULL;
}

static void* put_at_once(void* number) {
  const long me = (long)(size_t)number;
  const int right = (check_rank + 1) % check_size;
  for (long i = 0; i < kEpochs; ++i) {
    if (me == 0) MPI(MPI_Win_fence(0, wins[0]));
    pthread_barrier_wait(&all_here);
    MPI(MPI_Put(&i, 1, MPI_LONG, right, 1 + me, 1, MPI_LONG, wins[0]));
    pthread_barrier_wait(&all_here);
    if (me == 0) {
      MPI(MPI_Win_fence(0, wins[0]));
      CHECK(parts[0][1] == i && parts[0][2] == i);
    }
  }
  return NULL;
}

static void run(void* (*thread)(void*)) {
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, thread, (void*)i) == 0);
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char** argv) {
  int provided;
  MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  MPI(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
  MPI(MPI_Comm_size(MPI_COMM_WORLD, &check_size));
  if (provided != MPI_THREAD_MULTIPLE) {
    if (check_rank == 0) puts("SKIP: this MPI serves one thread at a time");
  } else {
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kThreads; ++i) {
        MPI(MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &parts[i],
                             &wins[i]));
      }
      run(use);
    }
    for (int i = 0; i < kThreads; ++i) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    run(make_and_free);
    for (int i = 0; i < kThreads; ++i) MPI(MPI_Comm_free(&comms[i]));
    MPI(MPI_Win_allocate(3 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &parts[0],
                         &wins[0]));
    parts[0][0] = 0;
    CHECK(pthread_barrier_init(&all_here, NULL, kThreads) == 0);
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[0]));
    if (check_size > 1) run(lock_and_unlock);
    run(put_at_once);
    MPI(MPI_Win_free(&wins[0]));
  }
  return check_end("threads");
}
