/* SPDX-License-Identifier: BSD-3-Clause */

/* A program that has sessions and no MPI_Init(): windows of all processes, and of some. The second
 * session outlives the first. MPICH is asked to fail if a session ends while it has objects. With
 * the argument "memory" the kernel refuses memfd_create. */

#define _GNU_SOURCE
#include "confine.h"

static int* make(MPI_Comm comm, MPI_Win* win) {
  int* mine;
  MPI(MPI_Win_allocate(2 * sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, win));
  return mine;
}

static void use(MPI_Comm comm, int* mine, MPI_Win win) {
  int rank, size, value;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  MPI(MPI_Win_fence(0, win));
  mine[0] = mine[1] = 0;
  MPI(MPI_Win_fence(0, win));
  value = rank + 1;
  MPI(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win));
  for (int target = 0; target < size; ++target) {
    MPI(MPI_Accumulate(&value, 1, MPI_INT, target, 1, 1, MPI_INT, MPI_SUM, win));
  }
  MPI(MPI_Win_fence(0, win));
  CHECK(mine[0] == (rank + size - 1) % size + 1 && mine[1] == size * (size + 1) / 2);
}

static void make_and_use(MPI_Comm comm) {
  MPI_Win win;
  int* mine = make(comm, &win);
  use(comm, mine, win);
  MPI(MPI_Win_free(&win));
}

static MPI_Comm open_session(MPI_Session* session, const char* tag) {
  MPI_Group group;
  MPI_Comm all;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "strict_finalize", "1");
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, session);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all);
  MPI_Group_free(&group);
  return all;
}

int main(int argc, char** argv) {
  MPI_Session first, second;
  MPI_Comm all, some;
  MPI_Win win;
  if (argc == 2 && strcmp(argv[1], "memory") == 0) refuse(SYS_memfd_create, SYS_memfd_create);
  all = open_session(&first, "first");
  MPI_Comm_rank(all, &check_rank);
  MPI_Comm_split(all, check_rank % 2, 0, &some);
  make_and_use(all);
  make_and_use(some);
  MPI_Comm all_again = open_session(&second, "second");
  int* mine = make(all_again, &win);
  MPI_Barrier(all);
  MPI_Comm_free(&some);
  MPI_Comm_free(&all);
  MPI(MPI_Session_finalize(&first));
  use(all_again, mine, win);
  make_and_use(all_again);
  MPI_Win_free(&win);
  MPI_Barrier(all_again);
  MPI_Comm_free(&all_again);
  MPI(MPI_Session_finalize(&second));
  if (check_rank == 0) printf("sessions passed\n");
  return 0;
}
