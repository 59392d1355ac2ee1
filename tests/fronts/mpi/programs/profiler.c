/* SPDX-License-Identifier: BSD-3-Clause */

/* A profiler as the standard has it: defines MPI_X() and goes on with PMPI_X(). Says at the end how
 * often it saw each call. A library of its own, or a part of a program. */

#include <mpi.h>
#include <stdio.h>

static int inits, makes, puts_, fences, rputs, waits, barriers, frees;

int MPI_Init(int* argc, char*** argv) {
  ++inits;
  return PMPI_Init(argc, argv);
}

int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* win) {
  ++makes;
  return PMPI_Win_create(base, size, unit, info, comm, win);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                     MPI_Win* win) {
  ++makes;
  return PMPI_Win_allocate(size, unit, info, comm, base, win);
}

int MPI_Put(const void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
            int target_count, MPI_Datatype target_type, MPI_Win win) {
  ++puts_;
  return PMPI_Put(origin, count, type, rank, displacement, target_count, target_type, win);
}

int MPI_Rput(const void* origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
             int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  ++rputs;
  return PMPI_Rput(origin, count, type, rank, displacement, target_count, target_type, win,
                   request);
}

int MPI_Win_fence(int assertion, MPI_Win win) {
  ++fences;
  return PMPI_Win_fence(assertion, win);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

int MPI_Win_free(MPI_Win* win) {
  ++frees;
  return PMPI_Win_free(win);
}

int MPI_Finalize(void) {
  fprintf(stderr,
          "seen: Init %d, Win %d, Put %d, Rput %d, Wait %d, fence %d, Barrier %d, free %d\n", inits,
          makes, puts_, rputs, waits, fences, barriers, frees);
  return PMPI_Finalize();
}
