/* SPDX-License-Identifier: BSD-3-Clause */

/* A program that has a session and no MPI_Init(): windows of all processes, and of some. */

#include "check.h"

static void use(MPI_Comm comm) {
  int rank, size, value;
  int* mine;
  MPI_Win win;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  MPI(MPI_Win_allocate(2 * sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win));
  mine[0] = mine[1] = 0;
  MPI(MPI_Win_fence(0, win));
  value = rank + 1;
  MPI(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win));
  for (int target = 0; target < size; ++target) {
    MPI(MPI_Accumulate(&value, 1, MPI_INT, target, 1, 1, MPI_INT, MPI_SUM, win));
  }
  MPI(MPI_Win_fence(0, win));
  CHECK(mine[0] == (rank + size - 1) % size + 1 && mine[1] == size * (size + 1) / 2);
  MPI(MPI_Win_free(&win));
}

int main(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm all, some;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "mobius", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all);
  MPI_Group_free(&group);
  MPI_Comm_rank(all, &check_rank);
  MPI_Comm_split(all, check_rank % 2, 0, &some);
  use(all);
  use(some);
  use(all);
  MPI_Barrier(all);
  MPI_Comm_free(&some);
  MPI_Comm_free(&all);
  MPI_Session_finalize(&session);
  if (check_rank == 0) printf("sessions passed\n");
  return 0;
}
