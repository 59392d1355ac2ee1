/* SPDX-License-Identifier: BSD-3-Clause */

/* MPI_Rget() from another host returns before the data is there: also while the target's process is
 * stopped. For two processes. */

#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { kWords = 3 };

static int is_stopped(int pid) {
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* file = fopen(path, "r");
  CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
  fclose(file);
  return strstr(line, ") T ") != NULL;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  CHECK(check_size == 2);
  long *mine, got[kWords] = {0};
  int flag, done, index, pid = getpid();
  MPI_Win win;
  MPI_Request requests[kWords];
  MPI(MPI_Win_allocate(kWords * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine,
                       &win));
  for (int i = 0; i < kWords; ++i) mine[i] = 10 * check_rank + i;
  MPI(MPI_Win_lock_all(0, win));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (check_rank == 1) {
    MPI(MPI_Send(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    raise(SIGSTOP);
  } else {
    MPI(MPI_Recv(&pid, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    while (!is_stopped(pid)) usleep(1000);
    for (int i = 0; i < kWords; ++i) {
      MPI(MPI_Rget(&got[i], 1, MPI_LONG, 1, i, 1, MPI_LONG, win, &requests[i]));
    }
    CHECK(got[0] == 0 && got[1] == 0 && got[2] == 0);
    CHECK(kill(pid, SIGCONT) == 0);
    MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(got[0] == 10 && requests[0] == MPI_REQUEST_NULL);
    MPI(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index == 1 && got[1] == 11);
    do {
      MPI(MPI_Testsome(kWords, requests, &done, &flag, MPI_STATUSES_IGNORE));
    } while (done == 0);
    CHECK(done == 1 && flag == 2 && got[2] == 12 && requests[2] == MPI_REQUEST_NULL);
  }
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Win_free(&win));
  return check_end("later");
}
