/* SPDX-License-Identifier: BSD-3-Clause */

/* Operations with requests that bring data from another host return before it is there, also while
 * the target's process is stopped. Tests of such requests return, too, and a wait for any of
 * several requests returns when one of them is complete. A request that is freed returns at once.
 * For two processes. */

#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { kWords = 7 };

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
  const long one = 1;
  int flag, done, index, indices[kWords], pid = getpid();
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
    for (int i = 0; i < 5; ++i) {
      MPI(MPI_Rget(&got[i], 1, MPI_LONG, 1, i, 1, MPI_LONG, win, &requests[i]));
    }
    MPI(MPI_Rget_accumulate(&one, 1, MPI_LONG, &got[5], 1, MPI_LONG, 1, 5, 1, MPI_LONG, MPI_SUM,
                            win, &requests[5]));
    MPI(MPI_Rget_accumulate(NULL, 0, MPI_LONG, &got[6], 1, MPI_LONG, 1, 6, 1, MPI_LONG, MPI_NO_OP,
                            win, &requests[6]));
    MPI(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0);
    MPI(MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0);
    MPI(MPI_Testall(kWords, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag == 0);
    MPI(MPI_Testany(kWords, requests, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0);
    MPI(MPI_Testsome(kWords, requests, &done, indices, MPI_STATUSES_IGNORE));
    CHECK(done == 0);
    MPI_Request mixed[2] = {requests[0]};
    MPI(MPI_Irecv(&flag, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &mixed[1]));
    MPI(MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    MPI(MPI_Waitany(2, mixed, &index, MPI_STATUS_IGNORE));
    CHECK(index == 1 && mixed[0] == requests[0] && mixed[1] == MPI_REQUEST_NULL);
    MPI(MPI_Irecv(&flag, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &mixed[1]));
    MPI(MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    MPI(MPI_Waitsome(2, mixed, &done, indices, MPI_STATUSES_IGNORE));
    CHECK(done == 1 && indices[0] == 1 && mixed[0] == requests[0]);
    MPI(MPI_Request_free(&requests[3]));
    CHECK(requests[3] == MPI_REQUEST_NULL);
    for (int i = 0; i < kWords; ++i) CHECK(got[i] == 0);
    CHECK(kill(pid, SIGCONT) == 0);
    MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(got[0] == 10 && requests[0] == MPI_REQUEST_NULL);
    MPI(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index == 1 && got[1] == 11);
    do {
      MPI(MPI_Testsome(3, requests, &done, indices, MPI_STATUSES_IGNORE));
    } while (done == 0);
    CHECK(done == 1 && indices[0] == 2 && got[2] == 12 && requests[2] == MPI_REQUEST_NULL);
    MPI(MPI_Win_flush_local(1, win));
    for (int i = 0; i < kWords; ++i) CHECK(got[i] == 10 + i);
    MPI(MPI_Waitall(kWords, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < kWords; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
  }
  MPI(MPI_Win_unlock_all(win));
  MPI(MPI_Win_free(&win));
  return check_end("later");
}
