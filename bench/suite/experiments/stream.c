/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * bandwidth and message-rate: many transfers in a row, then one synchronisation that signals the
 * target, and an answer. Times are per transfer of one pair. Options:
 *
 *   depth=    transfers in a row
 *   dir=      one, or two: both directions at the same time
 *   partner=  pair, or pairs: all pairs of ranks at the same time
 *   touch=1   each transfer of a row has a place of its own, and the target reads all of it (after
 *             gets: writes it) before it answers. Otherwise data that is written again and again
 *             need not leave the writer's cache.
 */

#include <string.h>

#include "../session.h"

/* Fewer large transfers: longer rows take more time without telling more. */
enum { kDepth = 32, kLeastDepth = 4, kMostBytes = 8 << 20 };

typedef struct stream {
  suite_path_t* path;
  int to, from;
  int depth;
  int touches;
  size_t step; /* distance between the places of transfers */
} stream_t;

static volatile uint64_t sink;

/* Reads (or writes) one word of each line. */
static void touch(const stream_t* s, size_t area, int writes) {
  enum { kLine = 64 };
  unsigned char* data = s->path->window.base + area;
  uint64_t sum = 0;
  size_t bytes = s->path->type.extent < 8 ? 8 : s->path->type.extent;
  for (int i = 0; i < s->depth; i++) {
    volatile uint64_t* words = (volatile uint64_t*)(void*)(data + (size_t)i * s->step);
    for (size_t at = 0; at + 8 <= bytes; at += kLine) {
      if (writes)
        words[at / 8] = at;
      else
        sum += words[at / 8];
    }
  }
  sink = sum;
}

static int acknowledge(stream_t* s) {
  suite_path_t* path = s->path;
  suite_window_t* window = &path->window;
  int error = 0;
  if (path->transfer->acknowledge != NULL)
    return path->transfer->acknowledge(window, s->to, s->from);
  /* Active synchronisation has signalled both ranks; the next fence or post is the answer. */
  if (!path->sync->passive) return 0;
  if (s->from != SUITE_NOBODY) error = suite_library.tell(window, path->sync, s->from);
  if (s->to != SUITE_NOBODY && error == 0) error = suite_library.await(window, s->to);
  return error;
}

static int burst(stream_t* s) {
  suite_path_t* path = s->path;
  suite_window_t* window = &path->window;
  const suite_transfer_block_t* transfer = path->transfer;
  size_t source = path->area[0], target = path->area[1];
  int gets = transfer->effect == SUITE_GETS, error = 0;
  size_t near = gets ? target : source, far = gets ? source : target;
  if (transfer->stream != NULL) {
    error = transfer->stream(window, &path->wire, s->to, s->from, s->depth, s->step,
                             window->base + source, window->base + target);
  } else {
    if (path->sync->enter != NULL) error = path->sync->enter(window, s->to, s->from);
    for (int i = 0; s->to != SUITE_NOBODY && i < s->depth && error == 0; i++)
      error = transfer->start(window, &path->wire, s->to, window->base + near + (size_t)i * s->step,
                              far + (size_t)i * s->step, path->result);
    if (s->to != SUITE_NOBODY && transfer->wait != NULL && error == 0)
      error = transfer->wait(window);
    if (path->sync->leave != NULL && error == 0) error = path->sync->leave(window, s->to, s->from);
    if (path->sync->passive) {
      if (s->to != SUITE_NOBODY && error == 0)
        error = suite_library.tell(window, path->sync, s->to);
      if (s->from != SUITE_NOBODY && error == 0) error = suite_library.await(window, s->from);
    }
  }
  if (s->touches && s->from != SUITE_NOBODY) touch(s, far, gets);
  return error != 0 ? error : acknowledge(s);
}

static int repeat(void* context, uint64_t repetitions) {
  int error = 0;
  for (; repetitions > 0 && error == 0; repetitions--) error = burst(context);
  return error;
}

static void choose_partners(stream_t* s) {
  suite_path_t* path = s->path;
  int both = strcmp(suite_option(path->cell, "dir", "one"), "two") == 0;
  int to = SUITE_NOBODY, from = SUITE_NOBODY;
  path->partner->partners(path->comm.rank, path->comm.size, 0, &to, &from);
  s->to = to != SUITE_NOBODY || !both ? to : from;
  s->from = from != SUITE_NOBODY || !both ? from : to;
}

int suite_row_of(const suite_cell_t* cell, size_t bytes) {
  int depth = (int)suite_option_number(cell, "depth", kDepth);
  if ((size_t)depth * bytes > kMostBytes) depth = (int)(kMostBytes / bytes);
  return depth < kLeastDepth ? kLeastDepth : depth;
}

/* Whole lines, so that no two transfers share one. */
static size_t step_of(size_t extent) { return (extent + 63) / 64 * 64; }

/* Bytes of the largest row. */
static size_t room_of(const suite_session_t* session, const suite_cell_t* cell) {
  size_t room = 0;
  for (int i = 0; i < session->size_count; i++) {
    size_t row = step_of(session->sizes[i]) * (size_t)suite_row_of(cell, session->sizes[i]);
    if (row > room) room = row;
  }
  return room;
}

static const char* measure_size(void* context, size_t bytes) {
  stream_t* s = context;
  suite_path_t* path = s->path;
  suite_times_t times;
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  if (!suite_verify(path, 0, "before timing")) return NULL;
  s->depth = suite_row_of(path->cell, bytes);
  s->touches = suite_option_number(path->cell, "touch", 0) != 0;
  s->step = s->touches ? step_of(path->type.extent) : 0;
  choose_partners(s);
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, s, &times));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  suite_times_divide(&times, s->depth);
  path->parity = 0;
  if (suite_verify(path, 1, "after timing"))
    suite_record_samples(path->session, path->cell, NULL, bytes, &times);
  suite_times_free(&times);
  return NULL;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  suite_path_t path;
  stream_t s = {&path, SUITE_NOBODY, SUITE_NOBODY, kDepth, 0, 0};
  const char* refused = suite_path_open(session, cell, room_of(session, cell), &path);
  if (refused != NULL) return refused;
  const suite_transfer_block_t* transfer = path.transfer;
  if (transfer->start == NULL && transfer->stream == NULL) refused = "this transfer cannot stream";
  if (refused == NULL) refused = suite_each_size(session, measure_size, &s);
  suite_path_close(&path);
  return refused;
}

static suite_experiment_block_t bandwidth = {
    {SUITE_EXPERIMENT, "bandwidth", "many transfers in a row, then one synchronisation", NULL},
    measure};
static suite_experiment_block_t message_rate = {
    {SUITE_EXPERIMENT, "message-rate", "the same with small transfers", NULL}, measure};
SUITE_REGISTER(bandwidth)
SUITE_REGISTER(message_rate)
