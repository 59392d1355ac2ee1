/* SPDX-License-Identifier: BSD-3-Clause */

/* Windows over memory that cannot be moved, in processes to which the kernel refuses the system
 * call that is named: "copy" (process_vm_readv and writev), or "memory" (memfd_create). */

#define _GNU_SOURCE
#include "confine.h"

enum { kWords = 5000 };

int main(int argc, char** argv) {
  CHECK(argc == 2);
  if (strcmp(argv[1], "copy") == 0) refuse(SYS_process_vm_readv, SYS_process_vm_writev);
  if (strcmp(argv[1], "memory") == 0) refuse(SYS_memfd_create, SYS_memfd_create);
  check_begin(&argc, &argv);
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  long part[kWords] = {0}, values[kWords], got[kWords];
  MPI_Win win;
  for (int i = 0; i < kWords; ++i) values[i] = 10000L * check_rank + i;
  MPI(MPI_Win_create(part, sizeof part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(values, kWords, MPI_LONG, right, 0, kWords, MPI_LONG, win));
  MPI(MPI_Win_fence(0, win));
  for (int i = 0; i < kWords; ++i) CHECK(part[i] == 10000L * left + i);
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Accumulate(values, kWords, MPI_LONG, right, 0, kWords, MPI_LONG, MPI_SUM, win));
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Get(got, kWords, MPI_LONG, right, 0, kWords, MPI_LONG, win));
  MPI(MPI_Win_fence(0, win));
  for (int i = 0; i < kWords; ++i)
    CHECK(got[i] == 2 * values[i] && part[i] == 20000L * left + 2 * i);
  MPI(MPI_Win_free(&win));
  return check_end("confined");
}
