/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * atomics, accumulate and locks: all ranks update memory of rank 0 at the same time. The final
 * value shows whether an update was lost. Times are per update of one rank.
 *
 * Options: word=one (all ranks update one word) or own (one word per rank, 4 KiB apart).
 */

#include <stdlib.h>
#include <string.h>

#include "../session.h"

/* Updates of a rank in one repetition; few if an update takes longer than kSlowNs. */
enum { kUpdates = 64, kFewUpdates = 4, kSlowNs = 2000000, kOwnDistance = 4096 };

typedef struct contest {
  suite_path_t* path;
  size_t offset;                           /* of this rank's word in the window of rank 0 */
  int64_t* ones;                           /* the addends */
  int64_t known;                           /* for swaps: the last known value of the word */
  int64_t updates, done;                   /* per repetition; and all so far */
  const suite_transfer_block_t *get, *put; /* for locks */
} contest_t;

static int add(contest_t* c) {
  suite_path_t* path = c->path;
  suite_window_t* window = &path->window;
  int error = path->sync->enter != NULL ? path->sync->enter(window, 0, SUITE_NOBODY) : 0;
  if (error == 0)
    error = path->transfer->start(window, &path->wire, 0, c->ones, c->offset, path->result);
  if (error == 0 && path->transfer->wait != NULL) error = path->transfer->wait(window);
  if (error == 0 && path->sync->leave != NULL) error = path->sync->leave(window, 0, SUITE_NOBODY);
  return error;
}

/* Adds one by compare-and-swap, retried while other ranks come first. */
static int swap(contest_t* c) {
  suite_path_t* path = c->path;
  suite_window_t* window = &path->window;
  for (;;) {
    int64_t next = c->known + 1, seen = c->known;
    int error = path->sync->enter != NULL ? path->sync->enter(window, 0, SUITE_NOBODY) : 0;
    if (error == 0) error = path->transfer->start(window, &path->wire, 0, &next, c->offset, &seen);
    if (error == 0 && path->sync->leave != NULL) error = path->sync->leave(window, 0, SUITE_NOBODY);
    if (error != 0) return error;
    if (seen == c->known) {
      c->known = next;
      return 0;
    }
    c->known = seen;
  }
}

/* Adds one with a get and a put under the synchronisation, which must exclude other ranks. */
static int guarded(contest_t* c) {
  suite_path_t* path = c->path;
  suite_window_t* window = &path->window;
  int64_t value = 0;
  int error = path->sync->enter(window, 0, SUITE_NOBODY);
  if (error == 0) error = c->get->start(window, &path->wire, 0, &value, c->offset, path->result);
  if (error == 0) error = path->sync->complete(window, 0);
  value++;
  if (error == 0) error = c->put->start(window, &path->wire, 0, &value, c->offset, path->result);
  /* The value must not change until the put is complete, which leave() guarantees. */
  if (error == 0) error = path->sync->leave(window, 0, SUITE_NOBODY);
  return error;
}

static int repeat(void* context, uint64_t repetitions) {
  contest_t* c = context;
  int (*update)(contest_t*) = c->get != NULL                             ? guarded
                              : c->path->transfer->effect == SUITE_SWAPS ? swap
                                                                         : add;
  for (; repetitions > 0; repetitions--) {
    for (int64_t i = 0; i < c->updates; i++) {
      int error = update(c);
      if (error != 0) return error;
    }
    c->done += c->updates;
    int error = suite_library.barrier(&c->path->comm);
    if (error != 0) return error;
  }
  return 0;
}

/* If processes share a CPU, an update can take a whole time slice: the leader measures, and chooses
 * for all ranks. */
static int choose_updates(contest_t* c) {
  suite_comm_t* comm = &c->path->comm;
  c->updates = kFewUpdates;
  int error = suite_library.barrier(comm);
  int64_t begin = suite_now_ns();
  if (error == 0) error = repeat(c, 1);
  if (error == 0 && (suite_now_ns() - begin) / kFewUpdates < kSlowNs) c->updates = kUpdates;
  return error == 0 ? suite_library.share(comm, comm->leader, &c->updates, sizeof c->updates)
                    : error;
}

/* Rank 0 checks all words, or all elements of one array, and shares the result with the others. */
static int counts_are(suite_path_t* path, size_t bytes, int own, int64_t each) {
  int64_t finding[3] = {-1, own ? each : each * path->comm.size, 0}; /* byte, expected, seen */
  for (int rank = 0; path->comm.rank == 0 && rank < (own ? path->comm.size : 1); rank++) {
    const int64_t* words = (const int64_t*)(const void*)(path->window.base + path->area[0] +
                                                         (size_t)rank * kOwnDistance);
    for (size_t i = 0; i < bytes / 8 && finding[0] < 0; i++)
      if (words[i] != finding[1]) {
        finding[0] = (int64_t)i * 8;
        finding[2] = words[i];
      }
  }
  SUITE_CHECK(path, suite_library.share(&path->comm, 0, finding, sizeof finding));
  if (finding[0] < 0) return 1;
  char where[120];
  snprintf(where, sizeof where, "%lld updates, %lld seen", (long long)finding[1],
           (long long)finding[2]);
  suite_record_wrong(path->session, path->cell, bytes, finding[0], (int)(finding[1] & 255),
                     (int)(finding[2] & 255), where);
  return 0;
}

static const char* measure_size(void* context, size_t bytes) {
  contest_t* c = context;
  suite_path_t* path = c->path;
  suite_times_t times;
  const char* refused = bytes % 8 != 0 ? "updates are of words of 8 bytes" : NULL;
  if (c->get != NULL && bytes != 8) refused = "what a lock guards here is one word of 8 bytes";
  if (refused == NULL) refused = suite_path_size(path, bytes);
  refused = suite_agree(path->session, &path->comm, refused);
  if (refused != NULL) return refused;
  int own = strcmp(suite_option(path->cell, "word", "one"), "own") == 0;
  c->offset = path->area[0] + (own ? (size_t)path->comm.rank * kOwnDistance : 0);
  c->known = c->done = 0;
  for (size_t i = 0; i < bytes / 8; i++) c->ones[i] = 1;
  memset(path->window.base + path->area[0], 0,
         own ? (size_t)path->comm.size * kOwnDistance : bytes);
  SUITE_CHECK(path, suite_library.settle(&path->window));
  SUITE_CHECK(path, choose_updates(c));
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, c, &times));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  suite_times_divide(&times, (double)c->updates);
  if (counts_are(path, bytes, own, c->done))
    suite_record_samples(path->session, path->cell, NULL, bytes, &times);
  SUITE_CHECK(path, suite_library.settle(&path->window));
  suite_times_free(&times);
  return NULL;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  suite_path_t path;
  contest_t c;
  memset(&c, 0, sizeof c);
  c.path = &path;
  size_t room = suite_largest(session);
  if (room < 64 * kOwnDistance) room = 64 * kOwnDistance;
  const char* refused = suite_path_open(session, cell, room, &path);
  if (refused != NULL) return refused;
  int locks = strcmp(cell->experiment, "locks") == 0;
  suite_effect_t effect = path.transfer->effect;
  if (locks) {
    c.get = (const suite_transfer_block_t*)suite_find(SUITE_TRANSFER, "get");
    c.put = (const suite_transfer_block_t*)suite_find(SUITE_TRANSFER, "put");
    if (path.sync->enter == NULL || path.sync->complete == NULL || c.get == NULL || c.put == NULL)
      refused = "this synchronisation excludes nobody";
  } else if (effect != SUITE_ADDS && effect != SUITE_FETCH_ADDS && effect != SUITE_SWAPS) {
    refused = "this transfer updates nothing";
  } else if (!path.sync->passive) {
    refused = "ranks update when they like: the synchronisation must be passive";
  }
  c.ones = malloc(room);
  if (c.ones == NULL) abort();
  if (refused == NULL) refused = suite_each_size(session, measure_size, &c);
  free(c.ones);
  suite_path_close(&path);
  return refused;
}

#define CONTENTION(identifier, name, summary)                                                      \
  static suite_experiment_block_t identifier = {{SUITE_EXPERIMENT, name, summary, NULL}, measure}; \
  SUITE_REGISTER(identifier)
CONTENTION(atomics, "atomics", "all ranks update words of rank 0")
CONTENTION(accumulate, "accumulate", "all ranks add arrays to one of rank 0")
CONTENTION(locks, "locks", "all ranks read and write a word of rank 0 under a lock")
