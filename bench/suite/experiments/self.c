/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * self: the cost of measuring. self:timer:none:none times a read of the clock; self:call:none:none
 * the calls of a leg through pointers, with blocks that do nothing; self:loop:none:none a leg of a
 * loop whose steps do nothing.
 */

#include <string.h>

#include "../loops.h"
#include "../session.h"

static int read_clock(void* context, uint64_t repetitions) {
  for (; repetitions > 0; repetitions--) *(volatile int64_t*)context = suite_now_ns();
  return 0;
}

static int nothing(suite_window_t* window, int to, int from) {
  (void)window;
  (void)to;
  (void)from;
  return 0;
}

static int start_nothing(suite_window_t* window, const suite_type_t* type, int to, void* local,
                         size_t remote_offset, void* result) {
  (void)window;
  (void)type;
  (void)to;
  (void)local;
  (void)remote_offset;
  (void)result;
  return 0;
}

/* Volatile, so that the compiler does not know the called functions. */
static const suite_sync_block_t* volatile sync_block;
static const suite_transfer_block_t* volatile transfer_block;

static int empty_legs(void* context, uint64_t repetitions) {
  suite_path_t* path = context;
  path->sync = sync_block;
  path->transfer = transfer_block;
  for (; repetitions > 0; repetitions--) {
    int error = suite_leg(path, 1, SUITE_NOBODY);
    if (error != 0) return error;
  }
  return 0;
}

/* They count, as all steps do; the loop is run, since the counts are stored. */
static SUITE_INLINE int empty_turn(suite_spot_t* spot) {
  spot->sent++;
  __asm__ __volatile__("" ::: "memory");
  return 0;
}

static SUITE_INLINE int empty_await(suite_spot_t* spot) {
  spot->seen++;
  __asm__ __volatile__("" ::: "memory");
  return 0;
}

SUITE_DEFINE_THERE_AND_BACK(empty_loop, empty_turn, empty_await)

static int loop_legs(void* context, uint64_t repetitions) {
  return empty_loop(context, 1, repetitions);
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  static const suite_sync_block_t sync = {.enter = nothing, .leave = nothing};
  static const suite_transfer_block_t transfer = {.start = start_nothing};
  static suite_path_t path;
  static suite_spot_t spot;
  static int64_t now;
  const struct {
    const char* name;
    suite_repeat_t* repeat;
    void* context;
  } kinds[] = {
      {"timer", read_clock, &now}, {"call", empty_legs, &path}, {"loop", loop_legs, &spot}};
  suite_times_t times;
  size_t kind = 0;
  while (kind < sizeof kinds / sizeof kinds[0] && strcmp(cell->transfer, kinds[kind].name) != 0)
    kind++;
  if (kind == sizeof kinds / sizeof kinds[0]) return "self measures timer, call and loop";
  memset(&path, 0, sizeof path);
  path.pieces = 1;
  sync_block = &sync;
  transfer_block = &transfer;
  int error = suite_time(session, &session->world, kinds[kind].repeat, kinds[kind].context, &times);
  if (error != 0) suite_give_up(session, cell, error);
  suite_record_samples(session, cell, NULL, 1, &times);
  suite_times_free(&times);
  return NULL;
}

static suite_experiment_block_t self = {{SUITE_EXPERIMENT, "self", "what measuring costs", NULL},
                                        measure};
SUITE_REGISTER(self)
