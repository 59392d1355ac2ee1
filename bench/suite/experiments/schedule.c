/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * schedule: epochs whose operations can be reordered, merged or packed (paper 2; paper 3, figure
 * 11). The leader is the origin. Times are of an epoch at the origin. Option what=:
 *
 *   one        one operation of the size, and the synchronisation
 *   mixed      16 puts, then 16 gets, each of the size
 *   behind     a put, then a get, each of the size; the time until the get has arrived. For
 *              transfers with requests: rget. After each epoch the link rests for as long as the
 *              epoch took, because this measures latency, not throughput, and a limited link lets
 *              more pass after a pause
 *   pieces     one buffer of the size in n= adjacent operations
 *   scattered  puts of 8 bytes, at least 64 bytes apart, together of the size; with n=1, one put
 *   random     puts and gets of 1 byte to 4 KB, together of the size
 *
 * policy= sets the library's policy for the epoch. Consecutive cells that differ only in policy=
 * and n= are measured in turn, each time in another order, so that effects of a launch or a moment
 * are common to them.
 */

#include <stdlib.h>
#include <string.h>

#include "../session.h"

enum {
  kMixed = 16,
  kWord = 8,
  kApart = 64,
  kScattered = 8192,
  kSlot = 8192,
  kLargest = 4096,
  kGuard = 0xa5
};

/* Moves `bytes` between the areas of the two sides. Operations of an epoch do not overlap. */
typedef struct operation {
  int gets;
  size_t far, near, bytes;
} operation_t;

/* So many equal operations in a row, between as many places. */
typedef struct run {
  int gets;
  size_t bytes, count;
} run_t;

typedef struct epoch {
  suite_path_t* path;
  const suite_cell_t* cell; /* one of those that take turns */
  const suite_transfer_block_t *put, *get;
  operation_t* operations;
  suite_place_t* places; /* places of the operations */
  run_t* runs;           /* the operations as runs */
  size_t count, run_count;
  int to, from;
} epoch_t;

typedef enum what { ONE, MIXED, BEHIND, PIECES, SCATTERED, RANDOM, UNKNOWN } what_t;

static what_t what_of(const suite_cell_t* cell) {
  static const char* const kNames[] = {"one", "mixed", "behind", "pieces", "scattered", "random"};
  const char* name = suite_option(cell, "what", "one");
  int what = 0;
  while (what < UNKNOWN && strcmp(name, kNames[what]) != 0) what++;
  return (what_t)what;
}

/* The next operation of a random epoch with `left` bytes left. */
static operation_t random_operation(size_t i, size_t left) {
  uint64_t drawn = suite_mix(7, i);
  size_t bytes = (size_t)1 << (drawn >> 8) % 13;
  return (operation_t){(int)(drawn & 1), i * kSlot, i * kSlot, bytes < left ? bytes : left};
}

static size_t count_of(const suite_cell_t* cell, size_t bytes) {
  size_t count = 0;
  switch (what_of(cell)) {
    case MIXED:
      return 2 * kMixed;
    case BEHIND:
      return 2;
    case PIECES:
      return suite_option_number(cell, "n", 1);
    case SCATTERED:
      return suite_option_number(cell, "n", bytes / kWord);
    case RANDOM:
      for (size_t left = bytes; left > 0; count++) left -= random_operation(count, left).bytes;
      return count;
    default:
      return 1;
  }
}

/* Bytes of an area that the operations of a size need. */
static size_t room_of(const suite_cell_t* cell, size_t bytes) {
  switch (what_of(cell)) {
    case MIXED:
    case BEHIND:
      return count_of(cell, bytes) * bytes;
    case SCATTERED:
      return (size_t)kScattered * kApart;
    case RANDOM:
      return count_of(cell, bytes) * kSlot;
    default:
      return bytes;
  }
}

static void draw(epoch_t* e, size_t bytes) {
  const suite_cell_t* cell = e->cell;
  what_t what = what_of(cell);
  int gets = e->path->transfer->effect == SUITE_GETS;
  size_t left = bytes;
  for (size_t i = 0; i < e->count; i++) {
    operation_t* operation = &e->operations[i];
    if (what == MIXED || what == BEHIND) {
      *operation = (operation_t){i >= e->count / 2, i * bytes, i * bytes, bytes};
    } else if (what == PIECES) {
      size_t piece = bytes / e->count;
      *operation = (operation_t){gets, i * piece, i * piece, piece};
    } else if (what == SCATTERED) {
      /* An odd factor, so that no place comes twice. */
      size_t place = i * 5167 % kScattered;
      size_t piece = bytes / e->count;
      *operation = (operation_t){gets, place * kApart, i * piece, piece};
    } else if (what == RANDOM) {
      *operation = random_operation(i, left);
      left -= operation->bytes;
    } else {
      *operation = (operation_t){gets, 0, 0, bytes};
    }
  }
}

static void find_runs(epoch_t* e) {
  e->run_count = 0;
  for (size_t i = 0; i < e->count; i++) {
    const operation_t* operation = &e->operations[i];
    const operation_t* before = operation - 1;
    e->places[i] = (suite_place_t){operation->far, operation->near};
    if (i == 0 || operation->gets != before->gets || operation->bytes != before->bytes)
      e->runs[e->run_count++] = (run_t){operation->gets, operation->bytes, 0};
    e->runs[e->run_count - 1].count++;
  }
}

static int run_origin(epoch_t* e) {
  suite_path_t* path = e->path;
  suite_window_t* window = &path->window;
  suite_type_t type = path->wire;
  suite_run_of_bytes_t whole = {0, 0};
  type.runs = &whole;
  type.run_count = 1;
  unsigned char* near = window->base + path->area[1];
  int64_t begun = path->transfer->wait != NULL ? suite_now_ns() : 0;
  int error = path->sync->enter != NULL ? path->sync->enter(window, e->to, SUITE_NOBODY) : 0;
  const suite_place_t* places = e->places;
  for (size_t i = 0; i < e->run_count && error == 0; i++) {
    const run_t* run = &e->runs[i];
    const suite_transfer_block_t* transfer = run->gets ? e->get : e->put;
    type.bytes = type.extent = whole.bytes = run->bytes;
    error = transfer->start_all(window, &type, e->to, near, path->area[0], places, run->count,
                                path->result);
    places += run->count;
  }
  int64_t arrived = 0;
  if (path->transfer->wait != NULL && error == 0) {
    error = path->transfer->wait(window);
    arrived = suite_now_ns();
  }
  if (path->sync->leave != NULL && error == 0)
    error = path->sync->leave(window, e->to, SUITE_NOBODY);
  if (arrived != 0) {
    int64_t now = suite_now_ns();
    const int64_t rested = now + (now - begun);
    while (now < rested) now = suite_now_ns();
    path->session->aside_ns += now - arrived;
  }
  return error;
}

/* The target, and the other ranks, which some synchronisations need. */
static int run_target(epoch_t* e) {
  suite_path_t* path = e->path;
  int error = 0;
  if (path->sync->enter != NULL) error = path->sync->enter(&path->window, SUITE_NOBODY, e->from);
  if (path->sync->leave != NULL && error == 0)
    error = path->sync->leave(&path->window, SUITE_NOBODY, e->from);
  return error;
}

static int repeat(void* context, uint64_t repetitions) {
  epoch_t* e = context;
  int error = 0;
  for (; repetitions > 0 && error == 0; repetitions--)
    error = e->to != SUITE_NOBODY ? run_origin(e) : run_target(e);
  return error;
}

/* The value of byte `i` of the target's area: moved data, or the filler between. */
static unsigned char moved(uint64_t key, size_t i) {
  return (unsigned char)(suite_mix(key, i / 8) >> (i % 8 * 8));
}
static unsigned char unmoved(uint64_t key, size_t i) { return (unsigned char)~moved(key, i); }

/* The bytes of this rank's area before or after an epoch. */
static void lay_out(const epoch_t* e, uint64_t key, size_t room, int after, unsigned char* data) {
  int is_origin = e->to != SUITE_NOBODY;
  for (size_t i = 0; i < room; i++) data[i] = unmoved(key, i);
  for (size_t o = 0; o < e->count; o++) {
    const operation_t* operation = &e->operations[o];
    if (!after && operation->gets == is_origin) continue;
    size_t at = is_origin ? operation->near : operation->far;
    for (size_t i = 0; i < operation->bytes; i++) data[at + i] = moved(key, operation->far + i);
  }
}

typedef struct finding {
  int64_t byte, want, got; /* want == got: no error */
} finding_t;
static const finding_t kNothing = {0, 0, 0};

/* The byte around an area: another one for each of the two ranks, so that a write past the end
 * shows. */
static unsigned char guard_of(const epoch_t* e) { return e->to != SUITE_NOBODY ? 0xa5 : 0x5a; }

static void set_guards(const epoch_t* e, unsigned char* area, size_t room) {
  memset(area - SUITE_GUARD_BYTES, guard_of(e), SUITE_GUARD_BYTES);
  memset(area + room, guard_of(e), SUITE_GUARD_BYTES);
}
static finding_t check_guards(const epoch_t* e, const unsigned char* area, size_t room) {
  unsigned char guard = guard_of(e);
  for (int64_t i = 1; i <= SUITE_GUARD_BYTES; i++)
    if (area[-i] != guard) return (finding_t){-i, guard, area[-i]};
  for (size_t i = room; i < room + SUITE_GUARD_BYTES; i++)
    if (area[i] != guard) return (finding_t){(int64_t)i, guard, area[i]};
  return kNothing;
}

/* Runs one epoch with known data and compares every byte of both areas and their surroundings.
 * Returns 1 if right. */
static int verify(epoch_t* e, size_t bytes, uint64_t round, const char* when) {
  suite_path_t* path = e->path;
  size_t room = room_of(e->cell, bytes);
  uint64_t key = suite_mix(suite_mix(path->session->seed, bytes), round);
  unsigned char* area = path->window.base + path->area[e->to != SUITE_NOBODY ? 1 : 0];
  unsigned char* expected = malloc(room);
  finding_t mine = kNothing, *all = calloc((size_t)path->comm.size, sizeof *all);
  if (expected == NULL || all == NULL) abort();
  lay_out(e, key, room, 0, area);
  set_guards(e, area, room);
  SUITE_CHECK(path, suite_library.settle(&path->window));
  SUITE_CHECK(path, repeat(e, 1));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  lay_out(e, key, room, 1, expected);
  int takes_part = e->to != SUITE_NOBODY || e->from != SUITE_NOBODY;
  for (size_t i = 0; takes_part && i < room && mine.want == mine.got; i++)
    if (area[i] != expected[i]) mine = (finding_t){(int64_t)i, expected[i], area[i]};
  if (takes_part && mine.want == mine.got) mine = check_guards(e, area, room);
  SUITE_CHECK(path, suite_library.gather(&path->comm, &mine, all, sizeof mine));
  int right = 1;
  for (int rank = 0; rank < path->comm.size && right; rank++) {
    if (all[rank].want == all[rank].got) continue;
    char where[64];
    snprintf(where, sizeof where, "rank %d, %s", rank, when);
    suite_record_wrong(path->session, e->cell, bytes, all[rank].byte, (int)all[rank].want,
                       (int)all[rank].got, where);
    right = 0;
  }
  free(expected);
  free(all);
  return right;
}

static const char* find_transfers(epoch_t* e) {
  const suite_transfer_block_t* own = e->path->transfer;
  if (own->start_all == NULL || (own->effect != SUITE_PUTS && own->effect != SUITE_GETS))
    return "schedule takes puts and gets";
  int gets = own->effect == SUITE_GETS;
  e->put = gets ? (const suite_transfer_block_t*)suite_find(SUITE_TRANSFER, "put") : own;
  e->get = gets ? own : (const suite_transfer_block_t*)suite_find(SUITE_TRANSFER, "get");
  if (e->put == NULL || e->get == NULL) return "schedule needs put and get";
  what_t what = what_of(e->path->cell);
  if (what == UNKNOWN) return "there is no such epoch (what=)";
  if ((own->wait != NULL) != (what == BEHIND)) return "rget is for what=behind, and for no other";
  return NULL;
}

/* Many short turns, because a machine's speed changes within a second; fewer if an epoch takes
 * milliseconds. */
enum { kMostCells = 64, kTurns = 15, kFewTurns = 5, kLongBytes = 1 << 20 };

/* Sets up the epoch for a cell. */
static void change_to(epoch_t* e, const suite_cell_t* cell, size_t bytes) {
  const char* policy = suite_option(cell, "policy", NULL);
  if (policy != NULL) SUITE_CHECK(e->path, suite_library.rule(&e->path->window, policy));
  e->cell = cell;
  e->count = count_of(cell, bytes);
  draw(e, bytes);
  find_runs(e);
}

/* Times the cell and the cells that take turns with it. */
static void time_turns(epoch_t* e, size_t bytes, suite_times_t* times) {
  suite_path_t* path = e->path;
  const int cells = path->cell->turns + 1;
  const int many = room_of(path->cell, bytes) > kLongBytes ? kFewTurns : kTurns;
  const int turns = cells > 1 ? many : 1;
  int order[kMostCells];
  for (int i = 0; i < cells; i++) order[i] = i;
  for (int turn = 0; turn < turns; turn++) {
    /* Shuffled alike at all ranks: a limited link depends on the epoch before. */
    for (int i = cells - 1; i > 0; i--) {
      int other = (int)(suite_mix((uint64_t)turn, (uint64_t)i) % (uint64_t)(i + 1)), one = order[i];
      order[i] = order[other];
      order[other] = one;
    }
    for (int i = 0; i < cells; i++) {
      int which = order[i];
      change_to(e, path->cell + which, bytes);
      SUITE_CHECK(path,
                  suite_time_turn(path->session, &path->comm, repeat, e, turns, &times[which]));
    }
  }
}

static const char* measure_size(void* context, size_t bytes) {
  epoch_t* e = context;
  suite_path_t* path = e->path;
  const suite_cell_t* cell = path->cell;
  suite_times_t times[kMostCells] = {0};
  int right = 1;
  if (what_of(path->cell) == SCATTERED && bytes / kWord > kScattered) return "these are too many";
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  size_t most = 0;
  for (int i = 0; i <= cell->turns; i++) {
    if (bytes % suite_option_number(cell + i, "n", 1) != 0) return "the size is no multiple of n";
    size_t count = count_of(cell + i, bytes);
    if (what_of(cell) == SCATTERED && count != 1 && count * kWord != bytes)
      return "what is scattered is one, or words";
    if (count > most) most = count;
  }
  e->operations = calloc(most, sizeof *e->operations);
  e->places = calloc(most, sizeof *e->places);
  e->runs = calloc(most, sizeof *e->runs);
  if (e->operations == NULL || e->places == NULL || e->runs == NULL) abort();
  for (int i = 0; i <= cell->turns && right; i++) {
    change_to(e, cell + i, bytes);
    right = verify(e, bytes, 0, "before timing");
  }
  if (right) {
    time_turns(e, bytes, times);
    SUITE_CHECK(path, suite_library.settle(&path->window));
  }
  for (int i = 0; i <= cell->turns && right; i++) {
    change_to(e, cell + i, bytes);
    right = verify(e, bytes, 1, "after timing");
    if (right) suite_record_samples(path->session, cell + i, NULL, bytes, &times[i]);
  }
  for (int i = 0; i <= cell->turns; i++) suite_times_free(&times[i]);
  free(e->operations);
  free(e->places);
  free(e->runs);
  return NULL;
}

static const char* measure_turns(suite_session_t* session, const suite_cell_t* cell) {
  suite_path_t path;
  size_t room = 0;
  if (cell->turns >= kMostCells) return "there are too many cells that take turns";
  if (suite_option(cell, "policy", NULL) != NULL) {
    if (suite_library.rule == NULL) return "this library has no policies";
    if (strcmp(cell->memory, "allocate") != 0) return "policies are of memory 'allocate'";
  }
  for (int i = 0; i < session->size_count; i++) {
    size_t needed = room_of(cell, session->sizes[i]);
    if (needed > room) room = needed;
  }
  const char* refused = suite_path_open(session, cell, room, &path);
  if (refused != NULL) return refused;
  int origin = path.comm.leader, target = (origin + 1) % path.comm.size, rank = path.comm.rank;
  epoch_t e = {.path = &path,
               .to = rank == origin ? target : SUITE_NOBODY,
               .from = rank == target ? origin : SUITE_NOBODY};
  refused = find_transfers(&e);
  for (int i = 0; i <= cell->turns; i++) {
    const char* policy = suite_option(cell + i, "policy", NULL);
    if (policy != NULL && suite_library.rule(&path.window, policy) != 0)
      refused = "there is no such policy (policy=)";
  }
  if (refused == NULL) refused = suite_each_size(session, measure_size, &e);
  suite_path_close(&path);
  return refused;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  /* The first of the cells that took turns last, and the reason why they could not be measured. */
  static const suite_cell_t* first;
  static char text[SUITE_TEXT_BYTES];
  static const char* refused;
  if (first != NULL && cell > first && cell <= first + first->turns) return refused;
  first = cell;
  refused = measure_turns(session, cell);
  if (refused != NULL) refused = strncpy(text, refused, sizeof text - 1);
  return refused;
}

static suite_experiment_block_t schedule = {
    {SUITE_EXPERIMENT, "schedule", "epochs that could be re-ordered, merged or packed", NULL},
    measure};
SUITE_REGISTER(schedule)
