/* SPDX-License-Identifier: BSD-3-Clause */

/* Processes that MPI_Comm_spawn() starts: windows of theirs, and windows over the communicator that
 * they and those that started them are merged in. "several" uses MPI_Comm_spawn_multiple(), and
 * "without" starts processes without what is preloaded here. */

#include "check.h"

enum { kChildren = 2 };

static void use(MPI_Comm comm) {
  int rank, size;
  long *mine, part = -1;
  MPI_Win win, other;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI(MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win));
  MPI(MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, comm, &other));
  const long value = 100 + rank;
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, win));
  MPI(MPI_Win_fence(0, win));
  CHECK(*mine == 100 + left);
  MPI(MPI_Win_fence(0, other));
  MPI(MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, other));
  MPI(MPI_Win_fence(0, other));
  CHECK(part == 100 + left);
  MPI(MPI_Win_free(&other));
  MPI(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  MPI_Comm parent, between, merged;
  check_begin(&argc, &argv);
  CHECK(argc == 2);
  MPI(MPI_Comm_get_parent(&parent));
  use(MPI_COMM_WORLD);
  if (parent != MPI_COMM_NULL) {
    between = parent;
  } else if (strcmp(argv[1], "several") == 0) {
    char* commands[] = {argv[0], argv[0]};
    char* words[] = {argv[1], NULL};
    char** arguments[] = {words, words};
    const int counts[] = {1, kChildren - 1};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI(MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &between,
                                MPI_ERRCODES_IGNORE));
  } else {
    const int without = strcmp(argv[1], "without") == 0;
    char* words[] = {"-u", "LD_PRELOAD", argv[0], argv[1], NULL};
    MPI(MPI_Comm_spawn(without ? "env" : argv[0], without ? words : words + 3, kChildren,
                       MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE));
  }
  MPI(MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &merged));
  use(merged);
  MPI(MPI_Comm_free(&merged));
  MPI(MPI_Comm_disconnect(&between));
  return check_end(parent != MPI_COMM_NULL ? "child" : "spawned");
}
