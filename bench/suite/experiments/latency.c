/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The time of a leg with any combination of blocks, for sync-cost, datatypes, multi-op,
 * dynamic-comm, scaling and the matrix, which differ only in their cells.
 */

#include "../session.h"

static int repeat(void* context, uint64_t repetitions) {
  for (; repetitions > 0; repetitions--) {
    int error = suite_legs(context);
    if (error != 0) return error;
  }
  return 0;
}

/* Returns null, or the reason why this size is refused. */
static const char* measure_size(suite_path_t* path, size_t bytes) {
  suite_times_t times;
  if (suite_is_load(path->transfer)) return "loads are measured by apex only";
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  if (!suite_verify(path, 0, "before timing")) return NULL;
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, path, &times));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  suite_times_divide(&times, path->partner->legs(path->comm.size));
  if (suite_verify(path, 1, "after timing"))
    suite_record_samples(path->session, path->cell, NULL, bytes, &times);
  suite_times_free(&times);
  return NULL;
}

size_t suite_largest(const suite_session_t* session) {
  size_t largest = 0;
  for (int i = 0; i < session->size_count; i++)
    if (session->sizes[i] > largest) largest = session->sizes[i];
  return largest;
}

const char* suite_measure_legs(suite_session_t* session, const suite_cell_t* cell) {
  static char reason[SUITE_TEXT_BYTES];
  suite_path_t path;
  const char* refused = suite_path_open(session, cell, suite_largest(session), &path);
  if (refused != NULL) return refused;
  int measured = 0;
  reason[0] = '\0';
  for (int i = 0; i < session->size_count; i++) {
    refused = measure_size(&path, session->sizes[i]);
    if (refused == NULL)
      measured++;
    else
      snprintf(reason, sizeof reason, "%zu bytes: %s", session->sizes[i], refused);
  }
  suite_path_close(&path);
  return measured > 0 ? NULL : reason;
}

#define LATENCY(identifier, name, summary)                                               \
  static suite_experiment_block_t identifier = {{SUITE_EXPERIMENT, name, summary, NULL}, \
                                                suite_measure_legs};                     \
  SUITE_REGISTER(identifier)

LATENCY(latency, "latency", "a leg of any combination of blocks")
LATENCY(sync_cost, "sync-cost", "one small transfer with its synchronisation (paper 3, Table 2)")
LATENCY(datatypes, "datatypes", "strided, indexed and packed data beside data in a row")
LATENCY(multi_op, "multi-op", "one buffer in n transfers (paper 3, figure 11)")
LATENCY(dynamic_comm, "dynamic-comm", "communicators made later (paper 3, figures 1 to 4)")
LATENCY(scaling, "scaling", "all ranks transfer at once")
LATENCY(trust, "trust", "the same again, or with a known delay")
LATENCY(matrix, "matrix", "does this combination work")
