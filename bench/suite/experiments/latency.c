/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The time of a leg with any combination of blocks, for pingpong, completion, sync-cost, datatypes,
 * multi-op, dynamic-comm, scaling and the matrix, which differ only in their cells.
 */

#include <string.h>

#include "../session.h"

/* How fast a few cache lines go from one processor to another depends on where they lie. So small
 * transfers use several windows in turn, in turns with other libraries. */
enum { kWindows = 4, kMostBytesOfSeveral = 64 << 10 };

/* The windows of a cell, opened alike. */
typedef struct places {
  suite_path_t paths[kWindows];
  int count;
  uint64_t used[kWindows]; /* since they were filled: timed batches, at this rank */
} places_t;

/* What is timed: each batch uses the next window. */
typedef struct legs {
  places_t* places;
  uint64_t next, percent;
} legs_t;

/* Repetitions that are carried out and not counted, for a known difference. A wait instead would
 * change how the ranks meet. */
static uint64_t more_of(uint64_t percent, uint64_t repetitions) {
  const uint64_t more = (repetitions * percent + 50) / 100;
  return percent == 0 || more > 0 ? more : 1;
}

static int repeat(void* context, uint64_t repetitions) {
  legs_t* legs = context;
  const uint64_t place = legs->next++ % (uint64_t)legs->places->count;
  legs->places->used[place]++;
  repetitions += more_of(legs->percent, repetitions);
  return suite_repeat_legs(&legs->places->paths[place], repetitions);
}

/* Whether each leg gives right data in each window. */
static int verify(places_t* places, uint64_t round, const char* when) {
  int right = 1;
  for (int i = 0; i < places->count; i++) {
    suite_path_t* path = &places->paths[i];
    if (round > 0) SUITE_CHECK(path, suite_library.settle(&path->window));
    right &= suite_verify(path, round, when);
  }
  return right;
}

static void fill_timed(places_t* places) {
  memset(places->used, 0, sizeof places->used);
  for (int i = 0; i < places->count; i++) suite_fill_timed(&places->paths[i]);
}

/* After timing: what went there and back is at both ends, and each leg still gives right data. */
static int verify_again(places_t* places) {
  int right = 1;
  for (int i = 0; i < places->count; i++)
    if (places->used[i] > 0) right &= suite_verify_timed(&places->paths[i]);
  return verify(places, 1, "after timing") && right;
}

static void record(suite_path_t* path, const char* part, size_t bytes, suite_times_t* times) {
  /* What goes there and back is recorded as that, as it always was. */
  if (path->legs == SUITE_APART) suite_times_divide(times, path->partner->legs(path->comm.size));
  suite_record_samples(path->session, path->cell, part, bytes, times);
}

/* The same twice, and once slower by `percent`: three parts of a cell. */
static const char* measure_known(places_t* places, size_t bytes, uint64_t percent) {
  enum { kParts = 3 };
  static const char* const kNames[kParts] = {"first", "second", "slower"};
  static suite_repeat_t* const kRepeats[kParts] = {repeat, repeat, repeat};
  suite_path_t* path = &places->paths[0];
  suite_times_t times[kParts];
  legs_t legs[kParts] = {{places, 0, 0}, {places, 0, 0}, {places, 0, percent}};
  void* const contexts[kParts] = {&legs[0], &legs[1], &legs[2]};
  char size[32];
  if (path->session->turns == NULL) return "the same twice is measured in turns";
  fill_timed(places);
  SUITE_CHECK(path,
              suite_time_beside(path->session, &path->comm, kParts, kRepeats, contexts, times));
  const int right = verify_again(places);
  const uint64_t batch = times[kParts - 1].batch > 0 ? times[kParts - 1].batch : 1;
  const double known = 1 + (double)more_of(percent, batch) / (double)batch;
  snprintf(size, sizeof size, "%zu", bytes);
  if (right) suite_record_fact(path->session, path->cell, "slower", "", known, size);
  for (int i = 0; i < kParts; i++) {
    if (right) record(path, kNames[i], bytes, &times[i]);
    suite_times_free(&times[i]);
  }
  return NULL;
}

/* Returns null, or the reason why this size is refused. */
static const char* measure_size(places_t* places, size_t bytes) {
  suite_path_t* path = &places->paths[0];
  suite_times_t times;
  legs_t legs = {places, 0, 0};
  if (suite_is_load(path->transfer)) return "loads are measured by apex only";
  for (int i = 0; i < places->count; i++) {
    const char* problem = suite_path_size(&places->paths[i], bytes);
    problem = suite_agree(path->session, &path->comm, problem);
    if (problem != NULL) return problem;
  }
  if (!verify(places, 0, "before timing")) return NULL;
  const uint64_t percent = suite_option_number(path->cell, "slower", 0);
  if (percent > 0) return measure_known(places, bytes, percent);
  fill_timed(places);
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, &legs, &times));
  if (verify_again(places)) record(path, NULL, bytes, &times);
  suite_times_free(&times);
  return NULL;
}

size_t suite_largest(const suite_session_t* session) {
  size_t largest = 0;
  for (int i = 0; i < session->size_count; i++)
    if (session->sizes[i] > largest) largest = session->sizes[i];
  return largest;
}

/* Opens the first window, and the others if there is memory for them. Returns null, or the reason
 * why there is none. */
static const char* open_places(suite_session_t* session, const suite_cell_t* cell,
                               places_t* places) {
  const size_t largest = suite_largest(session);
  const int wanted = session->turns != NULL && largest <= kMostBytesOfSeveral ? kWindows : 1;
  const char* refused = suite_path_open(session, cell, largest, &places->paths[0]);
  if (refused != NULL) return refused;
  places->count = 1;
  while (places->count < wanted &&
         suite_path_open(session, cell, largest, &places->paths[places->count]) == NULL)
    places->count++;
  return NULL;
}

const char* suite_measure_legs(suite_session_t* session, const suite_cell_t* cell) {
  static char reason[SUITE_TEXT_BYTES];
  places_t places;
  const char* refused = open_places(session, cell, &places);
  if (refused != NULL) return refused;
  int measured = 0;
  for (int i = 0; i < session->size_count; i++) {
    refused = measure_size(&places, session->sizes[i]);
    if (refused == NULL)
      measured++;
    else
      snprintf(reason, sizeof reason, "%zu bytes: %s", session->sizes[i], refused);
  }
  for (int i = 0; i < places.count; i++) suite_path_close(&places.paths[i]);
  return measured > 0 ? NULL : reason;
}

suite_legs_kind_t suite_legs_kind_of(const suite_cell_t* cell) {
  if (strcmp(cell->experiment, "pingpong") == 0) return SUITE_IN_PLACE;
  return strcmp(cell->experiment, "completion") == 0 ? SUITE_ONE_SIDE : SUITE_APART;
}

#define LATENCY(identifier, name, summary)                                               \
  static suite_experiment_block_t identifier = {{SUITE_EXPERIMENT, name, summary, NULL}, \
                                                suite_measure_legs};                     \
  SUITE_REGISTER(identifier)

LATENCY(pingpong, "pingpong", "the same bytes there and back (paper 1, §4)")
LATENCY(completion, "completion", "a transfer and its completion, by one side")
LATENCY(latency, "latency", "a leg of any combination of blocks")
LATENCY(sync_cost, "sync-cost", "one small transfer with its synchronisation (paper 3, Table 2)")
LATENCY(datatypes, "datatypes", "strided, indexed and packed data beside data in a row")
LATENCY(multi_op, "multi-op", "one buffer in n transfers (paper 3, figure 11)")
LATENCY(dynamic_comm, "dynamic-comm", "communicators made later (paper 3, figures 1 to 4)")
LATENCY(scaling, "scaling", "all ranks transfer at once")
LATENCY(trust, "trust", "the same again, or with a known delay")
LATENCY(matrix, "matrix", "does this combination work")
