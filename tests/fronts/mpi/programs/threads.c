/* SPDX-License-Identifier: BSD-3-Clause */

/* Two threads of each process, each with a window of its own over the same communicator. They fence
 * and free theirs in any order. Then each makes and frees windows over a communicator of its own.
 */

#include <pthread.h>

#include "check.h"

enum { kThreads = 2, kFences = 200, kWindows = 5 };

static MPI_Win wins[kThreads];
static long* parts[kThreads];
static MPI_Comm comms[kThreads];

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
  }
  return check_end("threads");
}
