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

/* ---- a known difference ---- */

typedef struct slowed {
  suite_path_t* path;
  uint64_t percent;
} slowed_t;

/* Repetitions that are carried out and not counted. A wait instead would change how the ranks meet.
 */
static uint64_t more_of(const slowed_t* slowed, uint64_t repetitions) {
  const uint64_t more = (repetitions * slowed->percent + 50) / 100;
  return more > 0 ? more : 1;
}

static int repeat_more(void* context, uint64_t repetitions) {
  const slowed_t* slowed = context;
  return repeat(slowed->path, repetitions + more_of(slowed, repetitions));
}

/* The same twice, and once slower: three parts of a cell. */
static const char* measure_known(suite_path_t* path, size_t bytes, uint64_t percent) {
  enum { kParts = 3 };
  static const char* const kNames[kParts] = {"first", "second", "slower"};
  static suite_repeat_t* const kRepeats[kParts] = {repeat, repeat, repeat_more};
  suite_times_t times[kParts];
  slowed_t slowed = {path, percent};
  void* const contexts[kParts] = {path, path, &slowed};
  char size[32];
  if (path->session->turns == NULL) return "the same twice is measured in turns";
  SUITE_CHECK(path,
              suite_time_beside(path->session, &path->comm, kParts, kRepeats, contexts, times));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  const int right = suite_verify(path, 1, "after timing");
  for (int i = 0; i < kParts; i++) {
    suite_times_divide(&times[i], path->partner->legs(path->comm.size));
    if (right) suite_record_samples(path->session, path->cell, kNames[i], bytes, &times[i]);
    suite_times_free(&times[i]);
  }
  snprintf(size, sizeof size, "%zu", bytes);
  const double batch = (double)times[kParts - 1].batch;
  if (right)
    suite_record_fact(
        path->session, path->cell, "slower", "",
        1 + (double)more_of(&slowed, times[kParts - 1].batch) / (batch > 0 ? batch : 1), size);
  return NULL;
}

/* Returns null, or the reason why this size is refused. */
static const char* measure_size(suite_path_t* path, size_t bytes) {
  suite_times_t times;
  if (suite_is_load(path->transfer)) return "loads are measured by apex only";
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  if (!suite_verify(path, 0, "before timing")) return NULL;
  const uint64_t percent = suite_option_number(path->cell, "slower", 0);
  if (percent > 0) return measure_known(path, bytes, percent);
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
