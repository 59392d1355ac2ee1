/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * overlap (paper 3, §4.6): the times of a transfer, of a computation that takes about as long, and
 * of both together. side=target: the passive side computes inside its exposure (figure 12);
 * side=origin: the active side computes between the start of the transfer and its completion.
 */

#include <stdlib.h>
#include <string.h>

#include "../session.h"

typedef struct overlap {
  suite_path_t path;
  int at_origin;
  uint64_t rounds; /* of computing, per leg */
} overlap_t;

static volatile double sink;

/* Touches no memory, so that it competes with transfers only for time. */
static void compute(uint64_t rounds) {
  double a = 1.0, b = 1.000001;
  for (uint64_t i = 0; i < rounds; i++) a = a * b + 1e-9;
  sink = a;
}

static void between(void* context, int to, int from) {
  const overlap_t* o = context;
  if ((o->at_origin ? to : from) != SUITE_NOBODY) compute(o->rounds);
}

static int both(void* context, uint64_t repetitions) {
  overlap_t* o = context;
  int error = 0;
  for (; repetitions > 0 && error == 0; repetitions--) error = suite_legs(&o->path);
  return error;
}

/* In each leg one side computes, so a repetition has as many computations as legs. */
static int alone(void* context, uint64_t repetitions) {
  const overlap_t* o = context;
  for (; repetitions > 0; repetitions--) compute(2 * o->rounds);
  return 0;
}

static int compare(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

/* The samples keep their order, which tells their rounds. */
static double median(const suite_times_t* times) {
  if (times->count == 0) return 0;
  double* sorted = malloc(times->count * sizeof *sorted);
  if (sorted == NULL) abort();
  memcpy(sorted, times->samples_ns, times->count * sizeof *sorted);
  qsort(sorted, times->count, sizeof *sorted, compare);
  const double middle = sorted[times->count / 2];
  free(sorted);
  return middle;
}

static void part(overlap_t* o, suite_repeat_t* repeat, const char* name, size_t bytes,
                 double* middle) {
  suite_path_t* path = &o->path;
  suite_times_t times;
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, o, &times));
  suite_times_divide(&times, 2);
  if (name != NULL) suite_record_samples(path->session, path->cell, name, bytes, &times);
  *middle = times.samples_ns != NULL ? median(&times) : 0;
  suite_times_free(&times);
}

static const char* measure_size(void* context, size_t bytes) {
  overlap_t* o = context;
  suite_path_t* path = &o->path;
  double transfer_ns = 0, compute_ns = 0, both_ns = 0;
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  path->between = NULL;
  if (!suite_verify(path, 0, "before timing")) return NULL;
  part(o, both, "transfer", bytes, &transfer_ns);
  o->rounds = 1000;
  part(o, alone, NULL, bytes, &compute_ns);
  if (path->comm.rank == path->comm.leader)
    o->rounds = (uint64_t)(1000 * transfer_ns / compute_ns) + 1;
  SUITE_CHECK(path,
              suite_library.share(&path->comm, path->comm.leader, &o->rounds, sizeof o->rounds));
  part(o, alone, "compute", bytes, &compute_ns);
  path->between = between;
  path->between_context = o;
  part(o, both, "both", bytes, &both_ns);
  path->between = NULL;
  SUITE_CHECK(path, suite_library.settle(&path->window));
  if (suite_verify(path, 1, "after timing") && path->comm.rank == path->comm.leader) {
    char detail[SUITE_TEXT_BYTES];
    double shorter = transfer_ns < compute_ns ? transfer_ns : compute_ns;
    double hidden = (transfer_ns + compute_ns - both_ns) / shorter;
    snprintf(detail, sizeof detail,
             "%zu bytes: transfer %.0f ns, computation %.0f ns, both %.0f ns", bytes, transfer_ns,
             compute_ns, both_ns);
    suite_record_fact(path->session, path->cell, "hidden", "", hidden, detail);
  }
  return NULL;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  overlap_t o;
  memset(&o, 0, sizeof o);
  o.at_origin = strcmp(suite_option(cell, "side", "target"), "origin") == 0;
  const char* refused = suite_path_open(session, cell, suite_largest(session), &o.path);
  if (refused != NULL) return refused;
  if (o.path.comm.size != 2 || strcmp(o.path.partner->head.name, "pair") != 0)
    refused = "overlap is of two ranks";
  if (o.path.transfer->exchange != NULL || suite_is_load(o.path.transfer))
    refused = "nothing can be done during this transfer";
  if (refused == NULL) refused = suite_each_size(session, measure_size, &o);
  suite_path_close(&o.path);
  return refused;
}

static suite_experiment_block_t overlap = {
    {SUITE_EXPERIMENT, "overlap", "transfer and computation at once (paper 3, figure 12)", NULL},
    measure};
SUITE_REGISTER(overlap)
