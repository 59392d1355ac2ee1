/* SPDX-License-Identifier: BSD-3-Clause */

/* Windows of every kind; puts, gets, accumulates and atomic operations in every kind of epoch. */

#include <stdint.h>

#include "check.h"

enum { kWords = 1000 };

static int right(void) { return (check_rank + 1) % check_size; }
static int left(void) { return (check_rank + check_size - 1) % check_size; }

static void use(MPI_Win win, int64_t* mine, MPI_Aint base) {
  const int64_t tag = 1000 * (check_rank + 1);
  int64_t values[kWords], got[kWords];
  for (int i = 0; i < kWords; ++i) values[i] = tag + i;

  memset(mine, 0, kWords * sizeof *mine);
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(values, kWords, MPI_INT64_T, right(), base, kWords, MPI_INT64_T, win));
  MPI(MPI_Win_fence(0, win));
  for (int i = 0; i < kWords; ++i) CHECK(mine[i] == 1000 * (left() + 1) + i);
  MPI(MPI_Get(got, kWords, MPI_INT64_T, right(), base, kWords, MPI_INT64_T, win));
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  for (int i = 0; i < kWords; ++i) CHECK(got[i] == values[i]);

  mine[0] = 0;
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  for (int r = 0; r < check_size; ++r) {
    int64_t one = 1, old = -1;
    MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win));
    MPI(MPI_Get(&old, 1, MPI_INT64_T, r, base, 1, MPI_INT64_T, win));
    MPI(MPI_Win_flush(r, win));
    one += old;
    MPI(MPI_Put(&one, 1, MPI_INT64_T, r, base, 1, MPI_INT64_T, win));
    MPI(MPI_Win_unlock(r, win));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win));
  CHECK(mine[0] == check_size);
  mine[0] = 0;
  mine[1] = 7;
  MPI(MPI_Win_unlock(check_rank, win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));

  MPI(MPI_Win_lock_all(0, win));
  int64_t one = 1, old = -1, two = 2;
  MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, base, 1, MPI_INT64_T, MPI_SUM, win));
  MPI(MPI_Win_flush(0, win));
  MPI(MPI_Fetch_and_op(&two, &old, MPI_INT64_T, 0, base, MPI_SUM, win));
  MPI(MPI_Win_flush_local(0, win));
  CHECK(old >= 1 && old < 3 * check_size);
  MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &old, 1, MPI_INT64_T, check_rank,
                         base + (MPI_Aint)sizeof old, 1, MPI_INT64_T, MPI_NO_OP, win));
  MPI(MPI_Win_flush_all(win));
  CHECK(old == 7);
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (check_rank == 0) {
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK(mine[0] == 3 * check_size);
    MPI(MPI_Win_unlock(0, win));
  }

  int64_t expected = 7, desired = 70 + check_rank;
  MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  MPI(MPI_Compare_and_swap(&desired, &expected, &old, MPI_INT64_T, right(),
                           base + (MPI_Aint)sizeof old, win));
  MPI(MPI_Win_flush(right(), win));
  CHECK(old == 7);
  MPI_Request requests[2];
  MPI(MPI_Rput(values, 5, MPI_INT64_T, right(), base + 80, 5, MPI_INT64_T, win, &requests[0]));
  MPI(MPI_Rget(got, 1, MPI_INT64_T, right(), base + 8, 1, MPI_INT64_T, win, &requests[1]));
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(got[0] == desired);
  for (int i = 0; i < 2; ++i) {
    MPI_Status status;
    MPI(MPI_Rput(values, 5, MPI_INT64_T, right(), base + 80, 5, MPI_INT64_T, win, &requests[0]));
    MPI(MPI_Wait(&requests[0], i == 0 ? MPI_STATUS_IGNORE : &status));
    CHECK(requests[0] == MPI_REQUEST_NULL);
  }
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(mine[1] == 70 + left());
  CHECK(mine[10] == 1000 * (left() + 1) && mine[14] == 1000 * (left() + 1) + 4);

  /* Each round has groups of its own, whose handles the MPI may have given before. */
  for (int round = 0; round < 4; ++round) {
    const int to = (check_rank + 1 + round) % check_size;
    const int from = (check_rank + (1 + round) * (check_size - 1)) % check_size;
    MPI_Group world, targets, origins;
    MPI(MPI_Win_get_group(win, &world));
    MPI(MPI_Group_incl(world, 1, &to, &targets));
    MPI(MPI_Group_incl(world, 1, &from, &origins));
    for (int again = 0; again < 2; ++again) {
      values[2] = tag + 10 * round + again;
      MPI(MPI_Win_post(origins, 0, win));
      MPI(MPI_Win_start(targets, 0, win));
      MPI(MPI_Put(values, 3, MPI_INT64_T, to, base, 3, MPI_INT64_T, win));
      MPI(MPI_Win_complete(win));
      if (check_rank % 2 == 0) {
        MPI(MPI_Win_wait(win));
      } else {
        int flag = 0;
        while (flag == 0) MPI(MPI_Win_test(win, &flag));
      }
      CHECK(mine[2] == 1000 * (from + 1) + 10 * round + again);
    }
    MPI(MPI_Group_free(&origins));
    MPI(MPI_Group_free(&targets));
    MPI(MPI_Group_free(&world));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static int64_t statics[kWords];

static void check_attributes(MPI_Win win, const void* base, MPI_Aint bytes, int unit, int flavor) {
  void* value = NULL;
  int flag = 0;
  MPI(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
  CHECK(flag && value == base);
  MPI(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
  CHECK(flag && *(MPI_Aint*)value == bytes);
  MPI(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
  CHECK(flag && *(int*)value == unit);
  MPI(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
  CHECK(flag && *(int*)value == flavor);
  MPI(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
  CHECK(flag && *(int*)value == MPI_WIN_UNIFIED);
}

static void created(int64_t* memory) {
  MPI_Win win;
  MPI(MPI_Win_create(memory, kWords * sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  check_attributes(win, memory, kWords * sizeof *memory, 1, MPI_WIN_FLAVOR_CREATE);
  use(win, memory, 0);
  MPI(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);
}

static void shared(void) {
  MPI_Win win;
  int64_t *mine = NULL, *first = NULL;
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI(MPI_Win_allocate_shared(kWords * sizeof *mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine,
                              &win));
  use(win, mine, 0);
  MPI(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
  CHECK(bytes == kWords * sizeof *mine && unit == 1 && mine == first + kWords * check_rank);
  MPI(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Win win;
  int64_t* mine = NULL;
  MPI(MPI_Win_allocate(kWords * sizeof *mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  check_attributes(win, mine, kWords * sizeof *mine, 1, MPI_WIN_FLAVOR_ALLOCATE);
  use(win, mine, 0);
  MPI(MPI_Win_free(&win));

  if (getenv("CHECK_WITHOUT_SHARED") == NULL) shared();

  MPI(MPI_Alloc_mem(kWords * sizeof *mine, MPI_INFO_NULL, &mine));
  created(mine);
  MPI(MPI_Free_mem(mine));

  mine = malloc(kWords * sizeof *mine);
  created(mine);
  free(mine);
  mine = malloc(10000 * kWords * sizeof *mine);
  created(mine + 12345);
  free(mine);
  created(statics);
  int64_t stack[kWords];
  created(stack);

  MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI(MPI_Win_attach(win, statics, sizeof statics));
  MPI_Aint address;
  MPI(MPI_Get_address(statics, &address));
  MPI_Aint* all = malloc(check_size * sizeof *all);
  MPI(MPI_Allgather(&address, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD));
  MPI(MPI_Win_lock_all(0, win));
  int64_t value = 42 + check_rank;
  MPI(MPI_Put(&value, 1, MPI_INT64_T, right(), all[right()], 1, MPI_INT64_T, win));
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(statics[0] == 42 + left());
  MPI(MPI_Win_detach(win, statics));
  MPI(MPI_Win_free(&win));
  free(all);
  return check_end("basics");
}
