/* SPDX-License-Identifier: BSD-3-Clause */

/* SPLASH-2's blocked LU factorisation of a dense matrix, as paper 5 measured it. README.md has how
 * to build and run it. Begin to read in factor.c; world.h is all that it needs of a library. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "factor.h"
#include "options.h"
#include "world.h"

/* What each process tells rank 0, after its blocks. */
typedef struct {
  times_t times;
  uint64_t checksum;
} told_t;
enum { kToldDoubles = sizeof(told_t) / sizeof(double) };

typedef struct {
  double seconds, communication, waiting; /* shares, averages over the processes */
  double residual;
  uint64_t checksum;
  const double* each; /* seconds of each repetition, in rank 0 */
} result_t;

static result_t collect(size_t place) {
  result_t result = {0.0, 0.0, 0.0, 0.0, 0, NULL};
  const int size = world_size();
  for (int rank = 0; rank < size; ++rank) {
    told_t told;
    world_get(rank, place, kToldDoubles, (double*)&told);
    world_complete();
    if (told.times.all > result.seconds) result.seconds = told.times.all;
    result.communication += told.times.communication / told.times.all / size;
    result.waiting += told.times.waiting / told.times.all / size;
    result.checksum += told.checksum;
  }
  return result;
}

static void print(const options_t* options, const result_t* result, int right) {
  const double operations = 2.0 / 3.0 * options->size * options->size * options->size;
  const double rate = operations / result->seconds / 1e9;
  const char* kernel = options->blas == NULL ? "plain" : options->blas;
  if (options->json) {
    printf(
        "{\"program\":\"lu\",\"library\":\"%s\",\"processes\":%d,\"size\":%d,\"block\":%d,"
        "\"placement\":\"%s\",\"kernel\":\"%s\",\"copy\":%s,\"seconds\":%.9g,\"gflops\":%.6g,"
        "\"communication\":%.6g,\"waiting\":%.6g,\"residual\":%.6g,"
        "\"checksum\":\"%016" PRIx64 "\",\"right\":%s,\"seconds_each\":[",
        world_name, world_size(), options->size, options->block,
        placement_names[options->placement], kernel, options->copy ? "true" : "false",
        result->seconds, rate, result->communication, result->waiting, result->residual,
        result->checksum, right ? "true" : "false");
    for (int i = 0; i < options->repeats; ++i) printf("%s%.9g", i > 0 ? "," : "", result->each[i]);
    printf("]}\n");
    return;
  }
  printf("lu: %d x %d in blocks of %d, %s placement, %s kernel, %d %s%s%s\n", options->size,
         options->size, options->block, placement_names[options->placement], kernel, world_size(),
         world_makes_threads ? "threads" : "processes over ", world_makes_threads ? "" : world_name,
         options->copy ? ", copying" : "");
  printf("lu: %.3f s, %.2f Gflop/s: %.1f %% computing, %.1f %% communication, %.1f %% waiting\n",
         result->seconds, rate, 100.0 * (1.0 - result->communication - result->waiting),
         100.0 * result->communication, 100.0 * result->waiting);
  printf("lu: checksum %016" PRIx64 ", residual %.2g of what rounding allows: %s\n",
         result->checksum, result->residual, right ? "right" : "WRONG");
}

static void make_layout(layout_t* layout, const options_t* options) {
  int* leader = malloc((size_t)world_size() * sizeof *leader);
  if (leader == NULL) world_fail("no memory");
  world_leaders(leader);
  for (int rank = 0; rank < world_size() && options->per_host != 0; ++rank) {
    leader[rank] = rank - rank % options->per_host;
  }
  const char* reason = layout_make(layout, options->size, options->block, options->placement,
                                   options->ranges, world_size(), world_rank(), leader);
  free(leader);
  if (reason != NULL) world_fail(reason);
}

typedef struct {
  options_t options;
  const kernels_t* kernels;
} task_t;

static int run(const void* argument) {
  const task_t* task = argument;
  const options_t* options = &task->options;
  layout_t layout;
  make_layout(&layout, options);
  const size_t place = layout.slots * (size_t)layout.block * (size_t)layout.block;
  double* part = world_allocate(place + kToldDoubles);
  const matrix_t matrix = {&layout, part};
  double* each = malloc((size_t)options->repeats * sizeof *each);
  if (each == NULL) world_fail("no memory");
  told_t told = {0};
  for (int i = 0; i < options->repeats; ++i) {
    times_t times;
    matrix_fill(&matrix, options->seed);
    factor_matrix(&matrix, task->kernels, !options->copy, &times);
    each[i] = times.all;
    if (i == 0 || times.all < told.times.all) told.times = times;
  }
  told.checksum = matrix_checksum(&matrix);
  memcpy(part + place, &told, sizeof told);
  world_barrier();
  int right = 1;
  if (world_rank() == 0) {
    result_t result = collect(place);
    result.each = each;
    result.residual = matrix_residual(&matrix, options->seed);
    right = result.residual < 1.0;
    print(options, &result, right);
    if (options->output != NULL && matrix_write(&matrix, options->output) != 0) {
      fprintf(stderr, "lu: cannot write %s: %s\n", options->output, strerror(errno));
      right = 0;
    }
  }
  world_barrier();
  world_free();
  free(each);
  layout_free(&layout);
  return !right;
}

int main(int argc, char** argv) {
  task_t task = {options_read(argc, argv), &kernels_plain};
  if (task.options.blas != NULL) {
    const char* reason;
    task.kernels = kernels_of_blas(task.options.blas, &reason);
    if (task.kernels == NULL) return fprintf(stderr, "lu: no BLAS: %s\n", reason), 2;
  }
  return world_run(task.options.threads, task.options.bound, run, &task);
}
