/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * spawn-cost (paper 3, Table 1): one process spawns n= others. Parts: spawn, the library's call
 * alone; alive, until all children have answered; disconnect. "Bytes" are the number of children.
 *
 * spawn-cost:connect and spawn-cost:join: two jobs of n processes, or of one, meet (--port-file).
 * The job that does not connect measures from when both are ready.
 */

#include "../session.h"

/* Slow spawns are repeated less often: no more after kEnoughNs. */
enum { kSpawns = 6, kLeastSpawns = 3 };
static const int64_t kEnoughNs = 3000000000;

/* Null, or why this job cannot do it. */
static const char* refuse(const suite_job_t* job, const suite_arrival_block_t* way,
                          uint64_t children) {
  int spawns = way->answer != NULL;
  if (spawns && job->size != 1) return "one process spawns: start it with -n 1";
  if (children == 0 || children > SUITE_MOST_CHILDREN) return "n is 1 to 64";
  if (!spawns && (uint64_t)job->size != children) return "start as many processes as n says";
  if (way->one_process && job->size != 1) return "one process joins another: start it with -n 1";
  return NULL;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  const suite_arrival_block_t* way =
      (const suite_arrival_block_t*)suite_find(SUITE_ARRIVAL, cell->transfer);
  suite_job_t* job = session->job;
  if (way == NULL) return "in this library no processes come in this way";
  int spawns = way->answer != NULL;
  if (job->child && spawns) {
    int error = way->answer();
    return error == 0 ? NULL : suite_library.explain(error);
  }
  uint64_t children = suite_option_number(cell, "n", 1);
  const char* refused = refuse(job, way, children);
  if (refused != NULL) return refused;
  const char* const kParts[] = {spawns ? "spawn" : "connect", "alive", "disconnect"};
  double samples[3][kSpawns];
  int64_t begin = suite_now_ns();
  int count = 0;
  for (; count < kSpawns; count++) {
    /* Two jobs meet equally often. */
    if (spawns && count >= kLeastSpawns && suite_now_ns() - begin > kEnoughNs) break;
    suite_show_life(session);
    suite_arrival_times_t times = {0, 0, 0};
    int error = way->come(job, cell, (int)children, &times);
    int64_t gone = suite_now_ns();
    if (error != 0) {
      if (count == 0) return suite_library.explain(error);
      suite_give_up(session, cell, error);
    }
    samples[0][count] = (double)(times.there - times.begin);
    samples[1][count] = (double)(times.alive - times.begin);
    samples[2][count] = (double)(gone - times.alive);
  }
  for (int part = 0; part < 3; part++) {
    /* The first time loads and connects things that later ones reuse. */
    suite_times_t shown = {samples[part] + 1, (uint64_t)count - 1, 1, (uint64_t)count, NULL, 0};
    suite_record_samples(session, cell, kParts[part], (size_t)children, &shown);
  }
  return NULL;
}

static suite_experiment_block_t spawn_cost = {
    {SUITE_EXPERIMENT, "spawn-cost",
     "processes that are spawned, or two jobs that meet (paper 3, Table 1)", NULL},
    measure};
SUITE_REGISTER(spawn_cost)
