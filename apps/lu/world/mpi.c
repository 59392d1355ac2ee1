/* SPDX-License-Identifier: BSD-3-Clause */

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "../world.h"

const char world_name[] = "MPI";
const int world_makes_threads = 0;

static int own_rank, ranks;
static MPI_Win window;
static double* own_part;

/* Errors of MPI calls end the job: MPI_ERRORS_ARE_FATAL is the default. */
int world_run(int threads, int bound, int (*program)(const void*), const void* argument) {
  (void)threads, (void)bound;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int result = program(argument);
  MPI_Finalize();
  return result;
}

int world_rank(void) { return own_rank; }
int world_size(void) { return ranks; }

void world_leaders(int* leader) {
  MPI_Comm host;
  int lowest = own_rank;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, own_rank, MPI_INFO_NULL, &host);
  MPI_Bcast(&lowest, 1, MPI_INT, 0, host);
  MPI_Comm_free(&host);
  MPI_Allgather(&lowest, 1, MPI_INT, leader, 1, MPI_INT, MPI_COMM_WORLD);
}

double* world_allocate(size_t doubles) {
  /* MPICH 4.0 takes the memory of others to be where parts of whole cache lines would put it. */
  const size_t bytes = (doubles * sizeof(double) + 63) / 64 * 64;
  MPI_Win_allocate((MPI_Aint)bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &own_part,
                   &window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  memset(own_part, 0, bytes);
  world_barrier();
  return own_part;
}

void world_free(void) {
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

void world_get(int rank, size_t first, size_t doubles, double* to) {
  MPI_Get(to, (int)doubles, MPI_DOUBLE, rank, (MPI_Aint)first, (int)doubles, MPI_DOUBLE, window);
}

void world_complete(void) { MPI_Win_flush_local_all(window); }

const double* world_map(int rank, size_t first) {
  return rank == own_rank ? own_part + first : NULL;
}

/* A barrier alone makes stores visible to no get: MPI_Win_sync() does, on both sides of it. */
void world_barrier(void) {
  MPI_Win_sync(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(window);
}

void world_fail(const char* reason) {
  fprintf(stderr, "lu: rank %d: %s\n", own_rank, reason);
  MPI_Abort(MPI_COMM_WORLD, 1);
  __builtin_unreachable();
}
