/* SPDX-License-Identifier: BSD-3-Clause */

#include <armci.h>
#include <stdio.h>
#include <stdlib.h>

#include "../world.h"

const char world_name[] = "ARMCI";
const int world_makes_threads = 0;

static int own_rank, ranks;
static void** part_of; /* address of each rank's array */

int world_run(int threads, int bound, int (*program)(const void*), const void* argument) {
  (void)threads, (void)bound;
  if (ARMCI_Init() != 0) return fprintf(stderr, "lu: ARMCI_Init() failed\n"), 1;
  own_rank = armci_msg_me();
  ranks = armci_msg_nproc();
  const int result = program(argument);
  ARMCI_Finalize();
  return result;
}

int world_rank(void) { return own_rank; }
int world_size(void) { return ranks; }

void world_leaders(int* leader) {
  for (int rank = 0; rank < ranks; ++rank) {
    const int domain = armci_domain_id(ARMCI_DOMAIN_SMP, rank);
    leader[rank] = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, domain, 0);
  }
}

double* world_allocate(size_t doubles) {
  part_of = malloc((size_t)ranks * sizeof *part_of);
  if (part_of == NULL || ARMCI_Malloc(part_of, (armci_size_t)(doubles * sizeof(double))) != 0) {
    world_fail("no memory");
  }
  double* own = part_of[own_rank];
  for (size_t i = 0; i < doubles; ++i) own[i] = 0.0;
  ARMCI_Barrier();
  return own;
}

void world_free(void) {
  ARMCI_Barrier();
  ARMCI_Free(part_of[own_rank]);
  free(part_of);
}

void world_get(int rank, size_t first, size_t doubles, double* to) {
  ARMCI_NbGet((double*)part_of[rank] + first, to, (int)(doubles * sizeof(double)), rank, NULL);
}

void world_complete(void) { ARMCI_WaitAll(); }

/* The paper's program copies blocks, also those in memory that the processes share. */
const double* world_map(int rank, size_t first) {
  return rank == own_rank ? (const double*)part_of[rank] + first : NULL;
}

void world_barrier(void) { ARMCI_Barrier(); }

void world_fail(const char* reason) {
  ARMCI_Error((char*)(size_t)reason, 1);
  abort();
}
