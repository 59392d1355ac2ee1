// SPDX-License-Identifier: BSD-3-Clause
//
// An ordinary MPI program with windows of each kind and each synchronisation. It knows nothing of
// Möbius; what it prints on success is "windows of N processes are right".

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWords = 1024 };

static int rank;
static int size;

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "rank %d of %d: wrong: %s\n", rank, size, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static long long expected(int writer, int word) { return 1000000LL * (writer + 1) + word; }

// Each rank puts into its right neighbour and reads that back from the window's own memory.
static void fences(MPI_Win window, long long* own) {
  long long out[kWords];
  for (int i = 0; i < kWords; ++i) out[i] = expected(rank, i);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
  MPI_Put(out, kWords, MPI_LONG_LONG, (rank + 1) % size, 0, kWords, MPI_LONG_LONG, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  for (int i = 0; i < kWords; ++i) {
    check(own[i] == expected((rank + size - 1) % size, i), "a put between fences");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void posts(MPI_Win window, long long* own) {
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  MPI_Group world;
  MPI_Group origins;
  MPI_Group targets;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &left, &origins);
  MPI_Group_incl(world, 1, &right, &targets);
  const long long value = expected(rank, 7) + 1;
  MPI_Win_post(origins, 0, window);
  MPI_Win_start(targets, 0, window);
  MPI_Put(&value, 1, MPI_LONG_LONG, right, 7, 1, MPI_LONG_LONG, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  check(own[7] == expected(left, 7) + 1, "a put between start and complete");
  MPI_Group_free(&targets);
  MPI_Group_free(&origins);
  MPI_Group_free(&world);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void locks(MPI_Win window, long long* own) {
  const int right = (rank + 1) % size;
  long long got[kWords];
  memset(got, 0, sizeof got);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  MPI_Get(got, kWords, MPI_LONG_LONG, right, 0, kWords, MPI_LONG_LONG, window);
  MPI_Win_unlock(right, window);
  for (int i = 0; i < kWords; ++i) {
    if (i != 7) check(got[i] == expected(rank, i), "a get under a lock");
  }

  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  own[0] = 0;
  own[1] = 0;
  MPI_Win_unlock(rank, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  const long long one = 1;
  long long before = -1;
  MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, window);
  MPI_Win_flush(0, window);
  check(before >= 0 && before < size, "what fetch-and-op found");
  MPI_Accumulate(&before, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, MPI_SUM, window);
  MPI_Request request;
  long long again = -1;
  MPI_Rget(&again, 1, MPI_LONG_LONG, rank, 7, 1, MPI_LONG_LONG, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(again == own[7], "a get with a request");
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    check(own[0] == size, "the sum of fetch-and-op");
    check(own[1] == (long long)size * (size - 1) / 2, "the sum of accumulate");
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every second word into every third one.
static void shapes(MPI_Win window, long long* own) {
  enum { kBlocks = 100 };
  MPI_Datatype from;
  MPI_Datatype to;
  MPI_Type_vector(kBlocks, 1, 2, MPI_LONG_LONG, &from);
  MPI_Type_vector(kBlocks, 1, 3, MPI_LONG_LONG, &to);
  MPI_Type_commit(&from);
  MPI_Type_commit(&to);
  long long out[2 * kBlocks];
  for (int i = 0; i < 2 * kBlocks; ++i) out[i] = expected(rank, i);
  MPI_Win_fence(0, window);
  MPI_Put(out, 1, from, (rank + 1) % size, 0, 1, to, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kBlocks; ++i) {
    check(own[3 * (size_t)i] == expected((rank + size - 1) % size, 2 * i), "a vector");
  }
  MPI_Type_free(&to);
  MPI_Type_free(&from);
}

static void all(MPI_Win window, long long* own) {
  fences(window, own);
  posts(window, own);
  locks(window, own);
  shapes(window, own);
  MPI_Win_free(&window);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  static long long fixed[kWords];
  long long* own;
  MPI_Win window;

  MPI_Win_allocate(sizeof fixed, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  all(window, own);

  own = malloc(sizeof fixed);
  MPI_Win_create(own, sizeof fixed, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  all(window, own);
  free(own);

  MPI_Win_create(fixed, sizeof fixed, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  all(window, fixed);

  MPI_Win_allocate_shared(sizeof fixed, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  all(window, own);

  if (rank == 0) printf("windows of %d processes are right\n", size);
  MPI_Finalize();
  return 0;
}
