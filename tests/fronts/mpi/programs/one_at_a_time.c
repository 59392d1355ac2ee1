/* SPDX-License-Identifier: BSD-3-Clause */

/* Lies between the front and the MPI, and ends a process that has two threads in the MPI's calls
 * that make or free windows. Each stays there for a while, so that another one would come. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int inside;

static void enter(void) {
  if (atomic_fetch_add(&inside, 1) != 0) {
    fputs("two threads make or free windows of the MPI at once\n", stderr);
    abort();
  }
  usleep(1000);
}

static void leave(void) { atomic_fetch_sub(&inside, 1); }

int PMPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                    MPI_Win* win) {
  int (*real)(void*, MPI_Aint, int, MPI_Info, MPI_Comm, MPI_Win*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Win_create");
  enter();
  const int result = real(base, size, unit, info, comm, win);
  leave();
  return result;
}

int PMPI_Win_free(MPI_Win* win) {
  int (*real)(MPI_Win*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Win_free");
  enter();
  const int result = real(win);
  leave();
  return result;
}
