/* SPDX-License-Identifier: BSD-3-Clause */

/* Programs that end as they should not: "live" with a window that is not freed, "dead" with a
 * process that dies while the others wait for it. */

#include <signal.h>

#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  CHECK(argc == 2);
  MPI_Win win;
  long* mine;
  const long value = check_rank;
  MPI(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(&value, 1, MPI_LONG, (check_rank + 1) % check_size, 0, 1, MPI_LONG, win));
  MPI(MPI_Win_fence(0, win));
  if (strcmp(argv[1], "dead") == 0) {
    if (check_rank == 1) raise(SIGKILL);
    MPI(MPI_Win_fence(0, win));
    puts("a fence without one process");
  }
  return check_end("endings");
}
