/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_SESSION_H
#define SUITE_SESSION_H

/**
 * @file
 * Tools for experiments: the opened blocks of a cell, a leg, verification, times, records.
 */

#include "../turns/turns.h"
#include "suite.h"

enum { SUITE_MAX_CELLS = 1024, SUITE_MAX_SIZES = 256, SUITE_MOST_BYTES = 1 << 30 };

typedef struct suite_session {
  suite_job_t* job;
  suite_comm_t world;
  FILE* out; /* non-null in the one process that writes records */
  uint64_t min_samples;
  double max_seconds;
  uint64_t seed;
  size_t sizes[SUITE_MAX_SIZES];
  int size_count;
  double timer_overhead_ns;
  int wrong; /* some data were wrong */
  /* Time of a sample that does not count; repetitions add to it. */
  int64_t aside_ns;
  turns_t* turns; /* null: samples are taken at once */
} suite_session_t;

/** How the data of an experiment's legs lie, and who takes part. */
typedef enum suite_legs_kind {
  SUITE_APART,    /* there from one area into a second one, and back from that */
  SUITE_IN_PLACE, /* there and back between the same place at both ranks, with the flag behind */
  SUITE_ONE_SIDE  /* likewise, from one side only: the target takes no part */
} suite_legs_kind_t;

/** The opened blocks of a cell. */
typedef struct suite_path {
  suite_session_t* session;
  const suite_cell_t* cell;
  const suite_communicator_block_t* communicator;
  const suite_memory_block_t* memory;
  const suite_sync_block_t* sync; /* null: none */
  const suite_transfer_block_t* transfer;
  const suite_type_block_t* type_block;
  const suite_partner_block_t* partner;
  suite_comm_t comm;
  suite_window_t window;
  int has_comm, has_window, has_sync;
  suite_legs_kind_t legs; /* the experiment's */
  size_t moved;           /* from the memory block's base of the window to `window.base` */

  /* of the current size */
  suite_type_t type; /* the layout of the data */
  suite_type_t wire; /* the transferred layout: the same, or contiguous if data is packed */
  suite_run_of_bytes_t wire_run;
  size_t pieces;       /* transfers per leg */
  size_t piece_extent; /* from one piece to the next */
  size_t area[2];      /* places of data in the window; legs alternate between them, or both are
                          one, from where data go to the same place at the other rank */
  size_t stage[2];     /* places for packing by hand: own, and the peer's */
  int by_hand;
  int parity;
  unsigned char* result; /* result of fetching transfers, as large as the data */
  uint64_t compare;      /* for swaps: the expected value of the word */
  suite_loop_t* loop;    /* for legs like these; null: there is none */
  suite_spot_t spot;     /* its arguments */
  /* Called between the start of transfers and their completion, unless null. */
  void (*between)(void* context, int to, int from);
  void* between_context;
} suite_path_t;

/** Opens blocks of a cell for data of up to `largest` bytes. Collective.
 *  @return null, or the reason why not; nothing stays open then */
const char* suite_path_open(suite_session_t* session, const suite_cell_t* cell, size_t largest,
                            suite_path_t* path);
const char* suite_path_close(suite_path_t* path);

/** Lays out one size. @return null, or the reason why it cannot */
const char* suite_path_size(suite_path_t* path, size_t bytes);

/** Measures a size, with the experiment's own data. @return null, or the reason why it cannot */
typedef const char* (*suite_size_t)(void* context, size_t bytes);

/** Measures all sizes of the session. @return null, or the reason of the last size if none could be
 *  measured */
const char* suite_each_size(const suite_session_t* session, suite_size_t measure, void* context);

/** Bytes of an area for data of `bytes`, guards included. */
size_t suite_area_bytes(const suite_cell_t* cell, size_t bytes);

/** One leg: from area[parity] into area[!parity], and the other way round next time. */
int suite_leg(suite_path_t* path, int to, int from);

/** One repetition: all legs of the partner block. */
int suite_legs(suite_path_t* path);

/** Repetitions, by a loop if there is one for legs like these. */
int suite_repeat_legs(suite_path_t* path, uint64_t repetitions);

/** Runs each leg with known data and compares every byte. Collective.
 *  @return 1 if right; else 0, and the record is written */
int suite_verify(suite_path_t* path, uint64_t round, const char* when);

/** If data go there and back between the same places: fills them with what will be timed, so that
 * suite_verify_timed() can tell whether it is at both ends afterwards. Collective. */
void suite_fill_timed(suite_path_t* path);
int suite_verify_timed(suite_path_t* path);

/** Ends the job after an error in the middle of a cell, because other ranks may wait forever. */
__attribute__((noreturn)) void suite_give_up(suite_session_t* session, const suite_cell_t* cell,
                                             int error);
/** The same for a problem that is no error of the library. */
__attribute__((noreturn)) void suite_stop(suite_session_t* session, const suite_cell_t* cell,
                                          const char* why);
#define SUITE_CHECK(path, call)                                                        \
  do {                                                                                 \
    int suite_error_ = (call);                                                         \
    if (suite_error_ != 0) suite_give_up((path)->session, (path)->cell, suite_error_); \
  } while (0)

/** Agrees on a problem: every rank of `comm` passes its own (or null); all get the first one.
 *  The text lives until the next call. */
const char* suite_agree(suite_session_t* session, suite_comm_t* comm, const char* problem);

/** Runs so many repetitions; all ranks call it. */
typedef int suite_repeat_t(void* context, uint64_t repetitions);

/** Times of repetitions. The leader of `comm` makes batches long compared with a timer read. */
typedef struct suite_times {
  double* samples_ns; /* the leader's; each the mean of a batch, per repetition */
  uint64_t count, batch;
  uint64_t repetitions; /* including untimed ones; the same at every rank */
  /* In turns: the rounds in which samples were taken, in their order. */
  struct {
    uint64_t round, samples;
  }* rounds;
  uint64_t round_count;
} suite_times_t;

/** Collective. @return 0 or an error of `repeat` or the library; suite_times_free() in any case */
int suite_time(suite_session_t* session, suite_comm_t* comm, suite_repeat_t* repeat, void* context,
               suite_times_t* times);
/** In turns: measures several things, each in a turn of its own of every round. */
int suite_time_beside(suite_session_t* session, suite_comm_t* comm, int count,
                      suite_repeat_t* const* repeats, void* const* contexts, suite_times_t* times);
/** One of several turns, which together take as long as suite_time(). Appends its samples to
 * `times`, all zeros before the first turn. The beginning of a turn does not count: the library has
 * to adapt to a new pattern. */
int suite_time_turn(suite_session_t* session, suite_comm_t* comm, suite_repeat_t* repeat,
                    void* context, int turns, suite_times_t* times);
/** Writes a record, at most every second, so that a slow program is not mistaken for a hung one. */
void suite_show_life(suite_session_t* session);
void suite_times_free(suite_times_t* times);
/** Divides all samples by the number of parts of a repetition. */
void suite_times_divide(suite_times_t* times, double parts);

int64_t suite_now_ns(void);

/** The kind of a cell's legs: pingpong and completion have their own. */
suite_legs_kind_t suite_legs_kind_of(const suite_cell_t* cell);

/** Measures all sizes of a latency experiment, for experiments that differ only in their blocks. */
const char* suite_measure_legs(suite_session_t* session, const suite_cell_t* cell);

/** The number of transfers in a row: option depth=, or fewer if they are large. */
int suite_row_of(const suite_cell_t* cell, size_t bytes);

/** The largest of the session's sizes. */
size_t suite_largest(const suite_session_t* session);

/* Records (docs/instrument-formats.md). `part` is appended to the cell's name unless null. */
void suite_record_samples(suite_session_t* session, const suite_cell_t* cell, const char* part,
                          size_t bytes, const suite_times_t* times);
void suite_record_fact(suite_session_t* session, const suite_cell_t* cell, const char* name,
                       const char* value, double number, const char* detail);
void suite_record_wrong(suite_session_t* session, const suite_cell_t* cell, size_t bytes,
                        int64_t byte, int expected, int got, const char* where);
void suite_record_text(suite_session_t* session, const char* type, const suite_cell_t* cell,
                       const char* name, const char* text);

/** A hash of both arguments. */
uint64_t suite_mix(uint64_t a, uint64_t b);

#endif
