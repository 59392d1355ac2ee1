/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls that a profiler counts: once MPI_Init(), twice the making of a window, and so on. The last
 * put is called by its other name, which profilers do not see. */

#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const int right = (check_rank + 1) % check_size,
            left = (check_rank + check_size - 1) % check_size;
  int created[4] = {0}, *allocated, values[4] = {10 * check_rank, 1, 2, 3};
  MPI_Win first, second;
  MPI(MPI_Win_create(created, sizeof created, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &first));
  MPI(MPI_Win_allocate(sizeof created, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated,
                       &second));
  MPI(MPI_Win_fence(0, first));
  for (int i = 0; i < 3; ++i) MPI(MPI_Put(values + i, 1, MPI_INT, right, i, 1, MPI_INT, first));
  MPI(PMPI_Put(values + 3, 1, MPI_INT, right, 3, 1, MPI_INT, first));
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, first));
  MPI(MPI_Win_lock_all(0, second));
  for (int i = 0; i < 4; ++i) {
    MPI_Request request;
    MPI(MPI_Rput(values + i, 1, MPI_INT, right, i, 1, MPI_INT, second, &request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  MPI(MPI_Win_unlock_all(second));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(created[0] == 10 * left && created[1] == 1 && created[2] == 2 && created[3] == 3);
  CHECK(memcmp(created, allocated, sizeof created) == 0);
  MPI(MPI_Win_free(&first));
  MPI(MPI_Win_free(&second));
  return check_end("profiled");
}
