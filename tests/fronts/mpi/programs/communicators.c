/* SPDX-License-Identifier: BSD-3-Clause */

/* Windows of other communicators than MPI_COMM_WORLD: some of its processes, in other orders, one
 * of them; before and after a window of all; several at a time. */

#include "check.h"

static void use(MPI_Comm comm) {
  int rank, size;
  long *mine, value, got;
  MPI_Win win, other;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI(MPI_Win_allocate(2 * sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win));
  mine[0] = mine[1] = -1;
  long* more = malloc(sizeof *more * (size_t)(rank + 1));
  MPI(MPI_Win_create(more, (MPI_Aint)sizeof *more * (rank + 1), 1 << (rank % 4), MPI_INFO_NULL,
                     comm, &other));
  value = 100 * check_rank + rank;
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG, win));
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(mine[1] % 100 == left && mine[0] == -1);
  MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, other));
  MPI(MPI_Put(&value, 1, MPI_LONG, right, right * (MPI_Aint)sizeof value / (1 << (right % 4)), 1,
              MPI_LONG, other));
  MPI(MPI_Win_unlock(right, other));
  MPI(MPI_Barrier(comm));
  MPI(MPI_Win_lock_all(0, other));
  MPI(MPI_Get(&got, 1, MPI_LONG, right, right * (MPI_Aint)sizeof value / (1 << (right % 4)), 1,
              MPI_LONG, other));
  MPI(MPI_Win_unlock_all(other));
  CHECK(got == value);
  MPI_Group group;
  int size_of_group, same;
  MPI(MPI_Win_get_group(win, &group));
  MPI(MPI_Group_size(group, &size_of_group));
  CHECK(size_of_group == size);
  MPI_Group mine_too;
  MPI(MPI_Comm_group(comm, &mine_too));
  MPI(MPI_Group_compare(group, mine_too, &same));
  CHECK(same == MPI_IDENT);
  MPI(MPI_Group_free(&mine_too));
  MPI(MPI_Group_free(&group));
  MPI(MPI_Win_free(&other));
  free(more);
  MPI(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Comm half, backwards, again, few;
  MPI_Group all, some;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half));
  MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &backwards));
  for (int round = 0; round < 2; ++round) {
    use(half);
    use(MPI_COMM_SELF);
    use(MPI_COMM_WORLD);
    use(backwards);
    MPI(MPI_Comm_dup(half, &again));
    use(again);
    MPI(MPI_Comm_free(&again));
    /* A window outlives its communicator. */
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &again));
    MPI_Win win;
    int *mine, value = 5;
    MPI(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, again, &mine, &win));
    MPI(MPI_Comm_free(&again));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(&value, 1, MPI_INT, (check_rank + 1) % check_size, 0, 1, MPI_INT, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(*mine == 5);
    MPI(MPI_Win_free(&win));
  }
  /* Made by its members alone. */
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
  const int members[] = {check_size - 1, 0};
  MPI(MPI_Group_incl(all, check_size > 1 ? 2 : 1, members, &some));
  if (check_rank == 0 || check_rank == check_size - 1) {
    MPI(MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &few));
    use(few);
    MPI(MPI_Comm_free(&few));
  }
  MPI(MPI_Group_free(&some));
  MPI(MPI_Group_free(&all));
  MPI(MPI_Comm_free(&half));
  MPI(MPI_Comm_free(&backwards));
  return check_end("communicators");
}
