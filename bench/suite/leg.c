/* SPDX-License-Identifier: BSD-3-Clause */

/* A leg, and its verification: the same for every combination of blocks. */

#include <stdlib.h>
#include <string.h>

#include "session.h"

#define TRY(call)                   \
  do {                              \
    int error_ = (call);            \
    if (error_ != 0) return error_; \
  } while (0)

static void pack(const suite_path_t* path, unsigned char* to, const unsigned char* from) {
  for (size_t piece = 0; piece < path->pieces; piece++)
    for (size_t i = 0; i < path->type.run_count; i++) {
      const suite_run_of_bytes_t* run = &path->type.runs[i];
      memcpy(to, from + piece * path->piece_extent + run->offset, run->bytes);
      to += run->bytes;
    }
}

static void unpack(const suite_path_t* path, unsigned char* to, const unsigned char* from) {
  for (size_t piece = 0; piece < path->pieces; piece++)
    for (size_t i = 0; i < path->type.run_count; i++) {
      const suite_run_of_bytes_t* run = &path->type.runs[i];
      memcpy(to + piece * path->piece_extent + run->offset, from, run->bytes);
      from += run->bytes;
    }
}

int suite_leg(suite_path_t* path, int to, int from) {
  suite_window_t* window = &path->window;
  const suite_transfer_block_t* transfer = path->transfer;
  if (path->legs == SUITE_ONE_SIDE) {
    if (to == SUITE_NOBODY) return 0;
    from = SUITE_NOBODY;
  }
  size_t source = path->area[path->parity], target = path->area[!path->parity];
  size_t extent = path->piece_extent;
  if (path->by_hand) {
    if (to != SUITE_NOBODY) pack(path, window->base + path->stage[0], window->base + source);
    source = path->stage[0];
    target = path->stage[1];
    extent = path->type.bytes;
  }
  if (path->sync->enter != NULL) TRY(path->sync->enter(window, to, from));
  if (transfer->post != NULL) {
    for (size_t i = 0; i < path->pieces && (to >= 0 || from >= 0); i++)
      TRY(transfer->post(window, &path->wire, to, from, window->base + source + i * extent,
                         window->base + target + i * extent));
    if (path->between != NULL) path->between(path->between_context, to, from);
    TRY(transfer->wait(window));
  } else if (transfer->exchange != NULL) {
    for (size_t i = 0; i < path->pieces && (to >= 0 || from >= 0); i++)
      TRY(transfer->exchange(window, &path->wire, to, from, window->base + source + i * extent,
                             window->base + target + i * extent));
  } else if (to != SUITE_NOBODY) {
    int gets = transfer->effect == SUITE_GETS;
    size_t near = gets ? target : source, far = gets ? source : target;
    void* result = transfer->effect == SUITE_SWAPS ? (void*)&path->compare : path->result;
    for (size_t i = 0; i < path->pieces; i++)
      TRY(transfer->start(
          window, &path->wire, to, window->base + near + i * extent, far + i * extent,
          result == &path->compare ? result : (char*)result + i * path->type.bytes));
    if (path->between != NULL) path->between(path->between_context, to, from);
    if (transfer->wait != NULL) TRY(transfer->wait(window));
  } else if (path->between != NULL && from != SUITE_NOBODY) {
    path->between(path->between_context, to, from);
  }
  if (path->sync->leave != NULL) TRY(path->sync->leave(window, to, from));
  if (path->sync->passive && path->legs != SUITE_ONE_SIDE) {
    if (to != SUITE_NOBODY) TRY(suite_library.tell(window, path->sync, to));
    if (from != SUITE_NOBODY) TRY(suite_library.await(window, from));
  }
  if (path->by_hand && from != SUITE_NOBODY)
    unpack(path, window->base + path->area[!path->parity], window->base + target);
  path->parity = !path->parity;
  return 0;
}

/* Legs of a pair by its loop. `to` is of the first one. */
static int loop_legs(suite_path_t* path, int to, uint64_t legs) {
  suite_window_t* window = &path->window;
  suite_spot_t* spot = &path->spot;
  int mine = to != SUITE_NOBODY, peer = 1 - path->comm.rank;
  if (path->legs == SUITE_ONE_SIDE && !mine) return 0;
  /* Where this rank's own legs begin: all of them at the same place. */
  int parity = mine ? path->parity : !path->parity;
  int gets = path->transfer->effect == SUITE_GETS;
  spot->data = window->base + path->area[gets ? !parity : parity];
  spot->far_data = window->bases[peer] + path->area[gets ? parity : !parity];
  spot->sent = window->sent[peer];
  spot->seen = window->seen[peer];
  int error = path->loop(spot, mine, legs);
  window->sent[peer] = spot->sent;
  window->seen[peer] = spot->seen;
  path->parity ^= (int)(legs % 2);
  return error;
}

static int one_leg(suite_path_t* path, int to, int from) {
  return path->loop != NULL ? loop_legs(path, to, 1) : suite_leg(path, to, from);
}

int suite_legs(suite_path_t* path) {
  int legs = path->partner->legs(path->comm.size);
  for (int leg = 0; leg < legs; leg++) {
    int to = SUITE_NOBODY, from = SUITE_NOBODY;
    path->partner->partners(path->comm.rank, path->comm.size, leg, &to, &from);
    TRY(suite_leg(path, to, from));
  }
  return 0;
}

int suite_repeat_legs(suite_path_t* path, uint64_t repetitions) {
  if (path->loop != NULL) {
    uint64_t legs = (uint64_t)path->partner->legs(path->comm.size);
    return loop_legs(path, path->comm.rank == 0 ? 1 : SUITE_NOBODY, repetitions * legs);
  }
  for (; repetitions > 0; repetitions--) TRY(suite_legs(path));
  return 0;
}

/* ---- verification ---- */

/* Word `i` of a rank's data in a round. Doubles are small whole numbers, so that sums are exact. */
static uint64_t word_of(const suite_path_t* path, uint64_t key, size_t i) {
  uint64_t word = suite_mix(key, i);
  if (path->type.is_double) {
    double value = (double)(word % 1000);
    memcpy(&word, &value, sizeof word);
  }
  return word;
}

/* Bytes `begin` to `end` of these words. */
static void write_pattern(const suite_path_t* path, uint64_t key, unsigned char* to, size_t begin,
                          size_t end) {
  for (size_t i = begin; i < end;) {
    uint64_t word = word_of(path, key, i / 8);
    size_t skipped = i % 8, bytes = 8 - skipped < end - i ? 8 - skipped : end - i;
    memcpy(to, (const unsigned char*)&word + skipped, bytes);
    to += bytes;
    i += bytes;
  }
}

static uint64_t key_of(const suite_path_t* path, uint64_t round, int rank, int which) {
  uint64_t key = suite_mix(path->session->seed, path->type.bytes * path->pieces);
  return suite_mix(suite_mix(key, round), (uint64_t)rank * 4 + (uint64_t)which);
}

static size_t span_of(const suite_path_t* path) { return path->pieces * path->piece_extent; }

/* The flag is behind the data, in the guard above. */
static int in_place(const suite_path_t* path) { return path->legs != SUITE_APART; }

/* Fills the guards of an area, and the pad and the flag behind the data if there is one. */
static void fill_guards(suite_path_t* path, size_t area, uint64_t key) {
  unsigned char* data = path->window.base + area;
  size_t span = span_of(path);
  for (size_t i = 1; i <= SUITE_GUARD_BYTES; i++)
    data[-(ptrdiff_t)i] = (unsigned char)(key >> i % 32);
  for (size_t i = span; i < span + SUITE_GUARD_BYTES - 64; i++)
    data[i] = (unsigned char)(key >> i % 32);
  if (in_place(path))
    memcpy(path->window.base + path->window.flags, &path->window.seen[1 - path->comm.rank], 8);
}

/* Fills an area and its guards. `which`: 0 data to send, 1 data before the leg. */
static void fill(suite_path_t* path, size_t area, uint64_t round, int which) {
  uint64_t key = key_of(path, round, path->comm.rank, which);
  write_pattern(path, key, path->window.base + area, 0, span_of(path));
  fill_guards(path, area, key);
}

/* In place: the rank whose data a leg moves. */
static int source_of(const suite_path_t* path, int to) {
  int moves = to != SUITE_NOBODY, gets = path->transfer->effect == SUITE_GETS;
  return moves != gets ? path->comm.rank : 1 - path->comm.rank;
}

/* In place: the source holds the pattern, the destination its complement, so that every byte must
 * change, and the source must still hold it afterwards. */
static void fill_place(suite_path_t* path, uint64_t round, int source) {
  unsigned char* data = path->window.base + path->area[0];
  write_pattern(path, key_of(path, round, source, 0), data, 0, span_of(path));
  for (size_t i = 0; source != path->comm.rank && i < span_of(path); i++)
    data[i] = (unsigned char)~data[i];
  fill_guards(path, path->area[0], key_of(path, round, path->comm.rank, 1));
}

static void add(const suite_type_t* type, unsigned char* to, const unsigned char* from) {
  if (type->is_double) {
    double a, b;
    memcpy(&a, to, 8);
    memcpy(&b, from, 8);
    a += b;
    memcpy(to, &a, 8);
    return;
  }
  uint64_t a = 0, b = 0;
  memcpy(&a, to, type->element_bytes);
  memcpy(&b, from, type->element_bytes);
  a += b;
  memcpy(to, &a, type->element_bytes);
}

/* The expected target area after a leg: the data before, and the runs that `sender` sent. */
static void expect(suite_path_t* path, unsigned char* expected, uint64_t round, int sender) {
  uint64_t before = key_of(path, round, path->comm.rank, 1);
  size_t span = span_of(path);
  write_pattern(path, before, expected, 0, span);
  if (sender == SUITE_NOBODY) return;
  uint64_t key = key_of(path, round, sender, 0);
  int adds = path->transfer->effect == SUITE_ADDS || path->transfer->effect == SUITE_FETCH_ADDS;
  size_t element = path->type.element_bytes;
  for (size_t piece = 0; piece < path->pieces; piece++)
    for (size_t r = 0; r < path->type.run_count; r++) {
      size_t begin = piece * path->piece_extent + path->type.runs[r].offset;
      size_t end = begin + path->type.runs[r].bytes;
      if (!adds) {
        write_pattern(path, key, expected + begin, begin, end);
        continue;
      }
      for (size_t i = begin; i < end; i += element) {
        unsigned char sent[8];
        write_pattern(path, key, sent, i, i + element);
        add(&path->type, expected + i, sent);
      }
    }
}

/* The byte of the guard above an area that is `i` bytes behind the data's start. */
static unsigned char above(const suite_path_t* path, uint64_t key, size_t i, const char** where) {
  size_t flag = path->window.flags - path->area[0];
  *where = "guard above";
  if (in_place(path) && i < flag) *where = "pad before the flag";
  if (!in_place(path) || i < flag || i >= flag + 8) return (unsigned char)(key >> i % 32);
  *where = "flag";
  return ((const unsigned char*)&path->window.seen[1 - path->comm.rank])[i - flag];
}

/* Compares the target area and its guards. Returns the offset of the first wrong byte, or -1. */
static int64_t compare(suite_path_t* path, const unsigned char* expected, uint64_t round, int* want,
                       int* got, const char** where) {
  const unsigned char* data = path->window.base + path->area[!path->parity];
  uint64_t key = key_of(path, round, path->comm.rank, 1);
  size_t span = span_of(path);
  *where = "data";
  for (size_t i = memcmp(data, expected, span) != 0 ? 0 : span; i < span; i++)
    if (data[i] != expected[i]) {
      *want = expected[i];
      *got = data[i];
      return (int64_t)i;
    }
  *where = "guard below";
  for (size_t i = 1; i <= SUITE_GUARD_BYTES; i++)
    if (data[-(ptrdiff_t)i] != (unsigned char)(key >> i % 32)) {
      *want = (unsigned char)(key >> i % 32);
      *got = data[-(ptrdiff_t)i];
      return (int64_t)i;
    }
  for (size_t i = span; i < span + SUITE_GUARD_BYTES - 64; i++) {
    *want = above(path, key, i, where);
    *got = data[i];
    if (*want != *got) return (int64_t)i;
  }
  return -1;
}

/* The expected result of a fetch: the target's data before. */
static int64_t compare_fetched(suite_path_t* path, uint64_t round, int target, int* want,
                               int* got) {
  uint64_t key = key_of(path, round, target, 1);
  size_t at = 0;
  for (size_t piece = 0; piece < path->pieces; piece++)
    for (size_t r = 0; r < path->type.run_count; r++) {
      size_t begin = piece * path->piece_extent + path->type.runs[r].offset;
      for (size_t i = begin; i < begin + path->type.runs[r].bytes; i++, at++) {
        unsigned char byte;
        write_pattern(path, key, &byte, i, i + 1);
        *want = byte;
        *got = path->result[at];
        if (*want != *got) return (int64_t)at;
      }
    }
  return -1;
}

static uint64_t first_word(suite_path_t* path, uint64_t round, int rank) {
  return word_of(path, key_of(path, round, rank, 1), 0);
}

typedef struct finding {
  int64_t wrong; /* not 0: there is a wrong byte */
  int64_t byte, want, got;
  char where[64];
} finding_t;

/* All ranks agree on what was found; the first wrong byte is recorded. Returns 1 if there is none.
 */
static int judge(suite_path_t* path, int64_t byte, int want, int got, const char* where,
                 const char* when) {
  finding_t mine, *all = calloc((size_t)path->comm.size, sizeof *all);
  if (all == NULL) abort();
  memset(&mine, 0, sizeof mine);
  if (byte >= 0) {
    mine.wrong = 1;
    mine.byte = byte;
    mine.want = want;
    mine.got = got;
    snprintf(mine.where, sizeof mine.where, "rank %d: %s, %s", path->comm.rank, where, when);
  }
  SUITE_CHECK(path, suite_library.gather(&path->comm, &mine, all, sizeof mine));
  int right = 1;
  for (int rank = 0; rank < path->comm.size && right; rank++)
    if (all[rank].wrong) {
      right = 0;
      suite_record_wrong(path->session, path->cell, path->type.bytes * path->pieces, all[rank].byte,
                         (int)all[rank].want, (int)all[rank].got, all[rank].where);
    }
  free(all);
  return right;
}

/* In place: the bytes of `source` must be at both ends. */
static int check_place(suite_path_t* path, uint64_t round, int source, const char* when) {
  const char* where = "data";
  int want = 0, got = 0;
  unsigned char* expected = malloc(span_of(path) + 8);
  if (expected == NULL) abort();
  write_pattern(path, key_of(path, round, source, 0), expected, 0, span_of(path));
  int64_t byte = compare(path, expected, round, &want, &got, &where);
  free(expected);
  return judge(path, byte, want, got, where, when);
}

static int check_leg(suite_path_t* path, uint64_t round, int to, int from, const char* when) {
  suite_effect_t effect = path->transfer->effect;
  int sender = effect == SUITE_GETS ? to : from, want = 0, got = 0;
  const char* where = "data";
  unsigned char* expected = malloc(span_of(path) + 8);
  if (expected == NULL) abort();
  expect(path, expected, round, sender);
  path->parity = !path->parity; /* the parity of the leg */
  int64_t byte = compare(path, expected, round, &want, &got, &where);
  if (byte < 0 && effect == SUITE_FETCH_ADDS && to != SUITE_NOBODY) {
    byte = compare_fetched(path, round, to, &want, &got);
    where = "fetched data";
  }
  if (byte < 0 && effect == SUITE_SWAPS && to != SUITE_NOBODY &&
      path->compare != first_word(path, round, to)) {
    byte = 0;
    where = "fetched data";
  }
  path->parity = !path->parity;
  free(expected);
  return judge(path, byte, want, got, where, when);
}

int suite_verify(suite_path_t* path, uint64_t round, const char* when) {
  int legs = path->partner->legs(path->comm.size);
  for (int leg = 0; leg < legs; leg++) {
    int to = SUITE_NOBODY, from = SUITE_NOBODY;
    uint64_t this_round = round * 64 + (uint64_t)leg;
    path->partner->partners(path->comm.rank, path->comm.size, leg, &to, &from);
    if (in_place(path)) {
      fill_place(path, this_round, source_of(path, to));
    } else {
      fill(path, path->area[path->parity], this_round, 0);
      fill(path, path->area[!path->parity], this_round, 1);
      memset(path->result, 0xa5, path->type.bytes * path->pieces);
      path->compare = to != SUITE_NOBODY ? first_word(path, this_round, to) : 0;
    }
    SUITE_CHECK(path, suite_library.settle(&path->window));
    SUITE_CHECK(path, one_leg(path, to, from));
    SUITE_CHECK(path, suite_library.settle(&path->window));
    if (!(in_place(path) ? check_place(path, this_round, source_of(path, to), when)
                         : check_leg(path, this_round, to, from, when)))
      return 0;
  }
  return 1;
}

/* The round of what is timed, and the rank that has it before. */
enum { kTimed = 1 << 20 };

static int timed_source(const suite_path_t* path) {
  return path->transfer->effect == SUITE_GETS ? 1 : 0;
}

void suite_fill_timed(suite_path_t* path) {
  if (!in_place(path)) return;
  fill_place(path, kTimed, timed_source(path));
  SUITE_CHECK(path, suite_library.settle(&path->window));
}

int suite_verify_timed(suite_path_t* path) {
  if (!in_place(path)) return 1;
  SUITE_CHECK(path, suite_library.settle(&path->window));
  return check_place(path, kTimed, timed_source(path), "after the timed repetitions");
}
