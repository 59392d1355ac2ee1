/* SPDX-License-Identifier: BSD-3-Clause */

/* Windows over many communicators, which are disconnected one after the other. */

#include "check.h"

enum { kWindows = 40 };

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const int right = (check_rank + 1) % check_size;
  for (int i = 0; i < kWindows; ++i) {
    int* mine;
    MPI_Comm comm;
    MPI_Win win;
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(&i, 1, MPI_INT, right, 0, 1, MPI_INT, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(*mine == i);
    MPI(MPI_Win_free(&win));
    MPI(MPI_Comm_disconnect(&comm));
    CHECK(comm == MPI_COMM_NULL);
  }
  return check_end("disconnected");
}
