/* SPDX-License-Identifier: BSD-3-Clause */

/* A window of each process alone; the job may have processes of another program that make none. */

#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Win win;
  int part = 0, value = 7;
  MPI(MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  MPI(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  MPI(MPI_Win_unlock(0, win));
  CHECK(part == value);
  MPI(MPI_Win_free(&win));
  /* As no_windows.c does. */
  int sum = 0;
  MPI(MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  MPI(MPI_Finalize());
  if (check_rank == 0) puts("own_window passed");
  return 0;
}
