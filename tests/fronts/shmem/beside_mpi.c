/* SPDX-License-Identifier: BSD-3-Clause */

/* A program that uses MPI and OpenSHMEM: PE numbers are the ranks of MPI_COMM_WORLD, whichever is
 * initialised or finalised first.
 *
 *   beside_mpi shmem|mpi   the one that begins, and ends last */

#include <mpi.h>

#include "check.h"

static long word;

int main(int argc, char** argv) {
  const int shmem_first = argc > 1 && strcmp(argv[1], "shmem") == 0;
  int rank = -1;
  int size = -1;
  long sum = 0;
  if (shmem_first) shmem_init();
  MPI_Init(&argc, &argv);
  if (!shmem_first) shmem_init();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(rank == shmem_my_pe() && size == shmem_n_pes());
  shmem_long_p(&word, rank + 1, right_pe());
  shmem_barrier_all();
  CHECK(word == left_pe() + 1);
  MPI_Allreduce(&word, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == (long)size * (size + 1) / 2);
  if (rank == 0) puts("beside_mpi: right");
  if (!shmem_first) shmem_finalize();
  MPI_Finalize();
  if (shmem_first) shmem_finalize();
  return 0;
}
