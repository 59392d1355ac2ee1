/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * protocols (paper 5, Table 1, figures 3 and 4): one process transfers, and the target only waits
 * in its library, which can serve requests there. A repetition is one transfer with its completion;
 * for messages, one leg of a ping-pong. Options:
 *
 *   cold=1       each transfer uses another place, so that its data is not in a near cache
 *   by=messages  records how the processes were started (docs/instrument-formats.md)
 */

#include <string.h>

#include "../session.h"

/* More than a second-level cache; windows of some libraries cannot be much larger. */
enum { kColdBytes = 8 << 20, kLine = 64 };

typedef struct transfers {
  suite_path_t* path;
  size_t places, step; /* places is a power of two */
  size_t next;
} transfers_t;

/* The offset of the next transfer: far from the last one, so that it is not prefetched. */
static size_t next_offset(transfers_t* t) {
  enum { kOdd = 40503 };
  return t->next++ * kOdd % t->places * t->step;
}

static int transfer_one(transfers_t* t) {
  suite_path_t* path = t->path;
  suite_window_t* window = &path->window;
  const int to = 1;
  const int gets = path->transfer->effect == SUITE_GETS;
  size_t offset = next_offset(t);
  size_t near = path->area[gets] + offset, far = path->area[!gets] + offset;
  int error = path->sync->enter != NULL ? path->sync->enter(window, to, SUITE_NOBODY) : 0;
  if (error == 0)
    error = path->transfer->start(window, &path->wire, to, window->base + near, far, path->result);
  if (error == 0 && path->transfer->wait != NULL) error = path->transfer->wait(window);
  return error == 0 && path->sync->leave != NULL ? path->sync->leave(window, to, SUITE_NOBODY)
                                                 : error;
}

static int ping_pong(transfers_t* t) {
  suite_path_t* path = t->path;
  const int rank = path->comm.rank, peer = 1 - rank;
  if (rank > 1) return 0;
  for (int leg = 0; leg < 2; leg++) {
    int sends = rank == leg;
    size_t offset = next_offset(t);
    int error = path->transfer->exchange(
        &path->window, &path->wire, sends ? peer : SUITE_NOBODY, sends ? SUITE_NOBODY : peer,
        path->window.base + path->area[0] + offset, path->window.base + path->area[1] + offset);
    if (error != 0) return error;
  }
  return 0;
}

static int repeat(void* context, uint64_t repetitions) {
  transfers_t* t = context;
  const int two_sided = t->path->transfer->exchange != NULL;
  if (!two_sided && t->path->comm.rank != 0) return 0;
  for (; repetitions > 0; repetitions--) {
    int error = two_sided ? ping_pong(t) : transfer_one(t);
    if (error != 0) return error;
  }
  return 0;
}

/* Returns null, or the reason why this size is refused. */
static const char* measure_size(void* context, size_t bytes) {
  transfers_t* t = context;
  suite_path_t* path = t->path;
  suite_times_t times;
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  if (!suite_verify(path, 0, "before timing")) return NULL;
  t->step = (path->type.extent + kLine - 1) / kLine * kLine;
  t->places = 1;
  t->next = 0;
  if (suite_option_number(path->cell, "cold", 0) != 0)
    while (2 * t->places * t->step <= kColdBytes) t->places *= 2;
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, t, &times));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  if (path->transfer->exchange != NULL) suite_times_divide(&times, 2);
  if (suite_verify(path, 1, "after timing"))
    suite_record_samples(path->session, path->cell, NULL, bytes, &times);
  suite_times_free(&times);
  return NULL;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  suite_path_t path;
  transfers_t t = {&path, 1, 0, 0};
  size_t room = suite_largest(session);
  if (suite_option_number(cell, "cold", 0) != 0 && room < kColdBytes) room = kColdBytes;
  const char* refused = suite_path_open(session, cell, room, &path);
  if (refused != NULL) return refused;
  if (path.transfer->start == NULL && path.transfer->exchange == NULL)
    refused = "this transfer is neither started by one side nor exchanged by two";
  else if (path.transfer->start != NULL && !path.sync->passive)
    refused = "this synchronisation needs the target, which takes no part here";
  if (refused == NULL) refused = suite_each_size(session, measure_size, &t);
  suite_path_close(&path);
  return refused;
}

static suite_experiment_block_t protocols = {
    {SUITE_EXPERIMENT, "protocols", "one side's transfers (paper 5, Table 1, figures 3, 4)", NULL},
    measure};
SUITE_REGISTER(protocols)
