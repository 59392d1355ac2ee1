/* SPDX-License-Identifier: BSD-3-Clause */

/* A process that waits in a window's synchronisation lets the MPI deliver messages that were sent.
 */

#include "check.h"

enum { kInts = 1 << 20 };

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  int* mine;
  MPI_Win win;
  MPI(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  int* data = malloc(kInts * sizeof *data);
  MPI_Request request = MPI_REQUEST_NULL;
  const int right = (check_rank + 1) % check_size,
            left = (check_rank + check_size - 1) % check_size;
  MPI_Group all, to, from;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
  MPI(MPI_Group_incl(all, 1, &right, &to));
  MPI(MPI_Group_incl(all, 1, &left, &from));
  for (int round = 0; round < 4; ++round) {
    /* Rank 0 sends to everybody else, who comes to the synchronisation only with the message. */
    MPI_Request requests[64];
    for (int i = 0; i < kInts; ++i) data[i] = check_rank == 0 ? i ^ round : -1;
    if (check_rank == 0) {
      for (int r = 1; r < check_size; ++r) {
        MPI(MPI_Isend(data, kInts, MPI_INT, r, round, MPI_COMM_WORLD, &requests[r]));
      }
    }
    if (round == 1 && check_rank != 0) MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, win));
    if (round == 1) MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank != 0) {
      MPI(MPI_Recv(data, kInts, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int i = 0; i < kInts; ++i) CHECK(data[i] == (i ^ round));
    }
    switch (round) {
      case 0:
        MPI(MPI_Win_fence(0, win));
        MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        break;
      case 1: /* Rank 0 waits for locks that the others hold until they have the message. */
        if (check_rank != 0) {
          MPI(MPI_Win_unlock(check_rank, win));
        } else {
          for (int r = 0; r < check_size; ++r) {
            MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win));
            MPI(MPI_Win_unlock(r, win));
          }
        }
        break;
      case 2:
        MPI(MPI_Win_post(from, 0, win));
        MPI(MPI_Win_start(to, 0, win));
        MPI(MPI_Win_complete(win));
        MPI(MPI_Win_wait(win));
        break;
      default: {
        MPI_Win other;
        int* memory;
        MPI(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &other));
        MPI(MPI_Win_free(&other));
      }
    }
    if (check_rank == 0) MPI(MPI_Waitall(check_size - 1, requests + 1, MPI_STATUSES_IGNORE));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  (void)request;
  free(data);
  MPI(MPI_Group_free(&to));
  MPI(MPI_Group_free(&from));
  MPI(MPI_Group_free(&all));
  MPI(MPI_Win_free(&win));
  return check_end("progress");
}
