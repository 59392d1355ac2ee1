/* SPDX-License-Identifier: BSD-3-Clause */

#include <mobius/mobius.h>

#include <stdio.h>
#include <stdlib.h>

#include "../world.h"

const char world_name[] = "Möbius";
const int world_makes_threads = 0;

static mob_mem_t memory;
static double** part_of;         /* address of each rank's array, for puts and gets */
static const double** mapped_of; /* the same array for loads; NULL on other hosts */

static void check(mob_status_t status) {
  if (status != MOB_OK) world_fail(mob_last_error());
}

int world_run(int threads, int bound, int (*program)(const void*), const void* argument) {
  (void)threads, (void)bound;
  if (mob_init() != MOB_OK) return fprintf(stderr, "lu: %s\n", mob_last_error()), 1;
  const int result = program(argument);
  check(mob_finalize());
  return result;
}

int world_rank(void) { return mob_rank(); }
int world_size(void) { return mob_size(); }

void world_leaders(int* leader) {
  mob_rank_t mine;
  check(mob_host_mate(0, &mine));
  check(mob_allgather(MOB_TEAM_WORLD, &mine, leader, sizeof mine));
}

double* world_allocate(size_t doubles) {
  const size_t ranks = (size_t)mob_size();
  part_of = malloc(ranks * sizeof *part_of);
  mapped_of = malloc(ranks * sizeof *mapped_of);
  if (part_of == NULL || mapped_of == NULL) world_fail("no memory");
  check(mob_mem_alloc(doubles * sizeof(double), &memory));
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    void* part;
    void* mapped = NULL;
    check(mob_mem_address(memory, rank, 0, &part));
    if (mob_is_host_mate(rank)) check(mob_ptr(rank, part, &mapped));
    part_of[rank] = part;
    mapped_of[rank] = mapped;
  }
  return mob_mem_local(memory);
}

void world_free(void) {
  check(mob_mem_free(memory));
  free(part_of);
  free(mapped_of);
}

void world_get(int rank, size_t first, size_t doubles, double* to) {
  check(mob_get_nbi(rank, part_of[rank] + first, to, doubles * sizeof(double)));
}

void world_complete(void) { check(mob_flush_local_all()); }

const double* world_map(int rank, size_t first) {
  return mapped_of[rank] == NULL ? NULL : mapped_of[rank] + first;
}

void world_barrier(void) { check(mob_barrier()); }

void world_fail(const char* reason) { mob_abort(1, reason); }
