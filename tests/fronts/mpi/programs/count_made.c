/* SPDX-License-Identifier: BSD-3-Clause */

/* Lies between the front and the MPI, and says at the end how many windows the MPI made and freed.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int made, freed;

int PMPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                    MPI_Win* win) {
  int (*real)(void*, MPI_Aint, int, MPI_Info, MPI_Comm, MPI_Win*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Win_create");
  ++made;
  return real(base, size, unit, info, comm, win);
}

int PMPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win) {
  int (*real)(MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Win_allocate");
  ++made;
  return real(size, unit, info, comm, base, win);
}

int PMPI_Win_free(MPI_Win* win) {
  int (*real)(MPI_Win*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Win_free");
  if (*win != MPI_WIN_NULL) ++freed;
  return real(win);
}

int PMPI_Finalize(void) {
  int (*real)(void);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Finalize");
  fprintf(stderr, "the MPI made %d windows and freed %d\n", made, freed);
  return real();
}
