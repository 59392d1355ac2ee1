/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LU_WORLD_H
#define LU_WORLD_H

/* What the factorisation needs of the processes that share the work. Each file in world/
 * implements it over one library; in world/threads.c the "processes" are threads. One of them is
 * linked with the rest of the program.
 *
 * Each process has one array of doubles. Others read it; only its owner writes it. A failure ends
 * the job with a message, so no function returns an error. */

#include <stddef.h>

/** The library, in words. */
extern const char world_name[];
/** Whether world_run() makes the processes itself, as threads. */
extern const int world_makes_threads;

/**
 * Calls `program` in every process of the job.
 * @param threads  how many threads to make, if world_makes_threads
 * @param bound  whether each of them keeps to a processor of its own
 * @return the largest result of the program here
 */
int world_run(int threads, int bound, int (*program)(const void* argument), const void* argument);

int world_rank(void);
int world_size(void);

/** Fills `leader[rank]` with the lowest rank on the host of each rank. Collective. */
void world_leaders(int* leader);

/** Allocates the array of each process, zeros. Collective; once in a job. @return the own array */
double* world_allocate(size_t doubles);
/** Frees the arrays. Collective. */
void world_free(void);

/** Starts to copy elements of the array of `rank`. */
void world_get(int rank, size_t first, size_t doubles, double* to);
/** Waits until the copies that were started are there. */
void world_complete(void);

/** @return where the caller can load these elements itself; NULL if it cannot */
const double* world_map(int rank, size_t first);

/** All processes meet. Then each sees what the others have written before. */
void world_barrier(void);

/** Ends the job. */
__attribute__((noreturn)) void world_fail(const char* reason);

#endif
