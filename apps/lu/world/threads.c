/* SPDX-License-Identifier: BSD-3-Clause */

/* The reference: threads of one process, which read each other's arrays directly. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for processors of threads */
#endif

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../world.h"

const char world_name[] = "threads";
const int world_makes_threads = 1;

typedef struct {
  pthread_t thread;
  int rank, result;
  int (*program)(const void*);
  const void* argument;
} rank_t;

static int ranks;
static double** part_of;
static pthread_barrier_t barrier;
static __thread int own_rank;

static void* run_rank(void* argument) {
  rank_t* rank = argument;
  own_rank = rank->rank;
  rank->result = rank->program(rank->argument);
  return NULL;
}

/* The processor for a thread: they take turns. */
static int processor_for(const cpu_set_t* allowed, int rank) {
  int turn = rank % CPU_COUNT(allowed), processor = 0;
  while (!CPU_ISSET(processor, allowed) || turn-- > 0) ++processor;
  return processor;
}

static void bind_threads(const rank_t* rank_of) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) world_fail("no processors are known");
  for (int i = 0; i < ranks; ++i) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor_for(&allowed, i), &own);
    if (pthread_setaffinity_np(rank_of[i].thread, sizeof own, &own) != 0) {
      world_fail("a thread cannot be bound to a processor");
    }
  }
}

int world_run(int threads, int bound, int (*program)(const void*), const void* argument) {
  rank_t* rank_of = calloc((size_t)threads, sizeof *rank_of);
  ranks = threads;
  part_of = calloc((size_t)threads, sizeof *part_of);
  if (rank_of == NULL || part_of == NULL) world_fail("no memory");
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    rank_of[i].rank = i;
    rank_of[i].program = program;
    rank_of[i].argument = argument;
    if (pthread_create(&rank_of[i].thread, NULL, run_rank, &rank_of[i]) != 0) {
      world_fail("the system makes no more threads");
    }
  }
  if (bound) bind_threads(rank_of);
  int result = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(rank_of[i].thread, NULL);
    if (rank_of[i].result > result) result = rank_of[i].result;
  }
  pthread_barrier_destroy(&barrier);
  free(part_of);
  free(rank_of);
  return result;
}

int world_rank(void) { return own_rank; }
int world_size(void) { return ranks; }

void world_leaders(int* leader) {
  for (int i = 0; i < ranks; ++i) leader[i] = 0;
}

double* world_allocate(size_t doubles) {
  part_of[own_rank] = calloc(doubles, sizeof(double));
  if (part_of[own_rank] == NULL) world_fail("no memory");
  world_barrier();
  return part_of[own_rank];
}

void world_free(void) {
  world_barrier();
  free(part_of[own_rank]);
}

void world_get(int rank, size_t first, size_t doubles, double* to) {
  memcpy(to, part_of[rank] + first, doubles * sizeof(double));
}

void world_complete(void) {}

const double* world_map(int rank, size_t first) { return part_of[rank] + first; }

void world_barrier(void) { pthread_barrier_wait(&barrier); }

void world_fail(const char* reason) {
  fprintf(stderr, "lu: %s\n", reason);
  exit(1);
}
