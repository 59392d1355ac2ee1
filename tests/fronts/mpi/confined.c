/* SPDX-License-Identifier: BSD-3-Clause */

/* Windows over memory that cannot be moved, in processes to which the kernel refuses the system
 * call that is named: "copy" (process_vm_readv and writev), or "memory" (memfd_create). */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

enum { kWords = 5000 };

static void refuse(unsigned first, unsigned second) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof code / sizeof *code, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

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
