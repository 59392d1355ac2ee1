/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * apex: APEX-Map. Options: k= (0.001 to 1), m= bytes of the array at each rank (16 MiB). The size
 * is that of a block. Times are per access of one rank while all ranks read; the checksums of all
 * passes must equal those of a sequential run. Transfers: get (into a buffer, then compute), load
 * (compute in place; in UPC through a pointer to shared), isendrecv (request, serve, reply).
 */

#include "../apex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

apex_passes_t* apex_message_passes = NULL;

/* Passes of a repetition: enough that waiting for all ranks at its end does not matter. */
enum { kMostAccesses = 1024, kLeastAccesses = 16, kWordsOfAPass = 1 << 18, kMostPasses = 8 };

static uint64_t owner_of(const apex_t* apex, uint64_t index) { return index / apex->words; }

/* Makes the index arrays, and the sums of a sequential run. */
static void prepare(apex_t* apex) {
  const suite_comm_t* comm = &apex->path.comm;
  uint64_t words = apex->words * (uint64_t)comm->size, blocks = words / apex->block;
  uint64_t state = suite_mix(apex->path.session->seed, (uint64_t)comm->rank + 17);
  for (int array = 0; array < APEX_ARRAYS; array++) {
    apex->sums[array] = 0;
    for (size_t i = 0; i < apex->accesses; i++) {
      state = suite_mix(state, i);
      double uniform = (double)(state >> 11) / 9007199254740992.0; /* [0, 1) */
      uint64_t block = (uint64_t)(pow(uniform, 1.0 / apex->k) * (double)blocks);
      if (block >= blocks) block = blocks - 1;
      /* Each rank's view begins with its own part. */
      uint64_t index = (block * apex->block + (uint64_t)comm->rank * apex->words) % words;
      apex->indices[array][i] = index;
      for (size_t w = 0; w < apex->block; w++) apex->sums[array] += apex_value(index + w);
    }
  }
}

static int access_remote(apex_t* apex, int owner, size_t offset, double* sum) {
  suite_path_t* path = &apex->path;
  suite_window_t* window = &path->window;
  if (path->transfer->reach != NULL) {
    const double* data = path->transfer->reach(window, owner, offset);
    if (data == NULL) return -1;
    *sum += apex_compute(data, apex->block);
    return 0;
  }
  if (path->transfer->add_up != NULL) {
    *sum += path->transfer->add_up(window, owner, offset, apex->block);
    return 0;
  }
  int error = path->sync->enter != NULL ? path->sync->enter(window, owner, SUITE_NOBODY) : 0;
  if (error == 0)
    error = path->transfer->start(window, &path->wire, owner, apex->buffer, offset, NULL);
  if (error == 0 && path->transfer->wait != NULL) error = path->transfer->wait(window);
  if (error == 0 && path->sync->leave != NULL)
    error = path->sync->leave(window, owner, SUITE_NOBODY);
  if (error == 0) *sum += apex_compute(apex->buffer, apex->block);
  return error;
}

static int one_sided(apex_t* apex, uint64_t passes) {
  suite_path_t* path = &apex->path;
  const double* own = (const double*)(const void*)(path->window.base + path->area[0]);
  int64_t begin = suite_now_ns();
  for (uint64_t pass = 0; pass < passes; pass++, apex->next++) {
    const uint64_t* indices = apex->indices[apex->next % APEX_ARRAYS];
    double sum = 0;
    for (size_t i = 0; i < apex->accesses; i++) {
      int owner = (int)owner_of(apex, indices[i]);
      size_t word = indices[i] % apex->words;
      if (owner == path->comm.rank) {
        sum += apex_compute(own + word, apex->block);
        continue;
      }
      int error = access_remote(apex, owner, path->area[0] + word * sizeof(double), &sum);
      if (error != 0) return error;
    }
    apex->sum += sum;
    apex->expected += apex->sums[apex->next % APEX_ARRAYS];
  }
  int64_t end = suite_now_ns();
  /* Waits for all ranks, as two-sided programs do, so that both measure the slowest rank. */
  int error = suite_library.barrier(&path->comm);
  apex->working_ns += end - begin;
  apex->waiting_ns += suite_now_ns() - end;
  return error;
}

static int repeat(void* context, uint64_t repetitions) {
  apex_t* apex = context;
  uint64_t passes = repetitions * apex->passes;
  return suite_is_two_sided(apex->path.transfer) ? apex_message_passes(apex, passes)
                                                 : one_sided(apex, passes);
}

/* Compares the sums of all ranks, and records how they spent their time (figure 5). */
static int check(apex_t* apex, size_t bytes) {
  suite_path_t* path = &apex->path;
  double mine[4] = {apex->sum, apex->expected, (double)apex->working_ns, (double)apex->waiting_ns};
  double* all = calloc((size_t)path->comm.size, sizeof mine);
  char detail[SUITE_TEXT_BYTES] = "";
  size_t used = 0;
  int right = 1;
  if (all == NULL) abort();
  SUITE_CHECK(path, suite_library.gather(&path->comm, mine, all, sizeof mine));
  for (int rank = 0; rank < path->comm.size; rank++) {
    const double* of = all + 4 * rank;
    if (of[0] != of[1] && right) {
      char where[120];
      snprintf(where, sizeof where, "rank %d: checksum is %.0f, of a sequential run %.0f", rank,
               of[0], of[1]);
      suite_record_wrong(path->session, path->cell, bytes, 0, 0, 1, where);
      right = 0;
    }
    if (used < sizeof detail)
      used += (size_t)snprintf(detail + used, sizeof detail - used, "%srank %d: %.1f %%",
                               rank > 0 ? ", " : "", rank, 100 * of[2] / (of[2] + of[3] + 1));
  }
  free(all);
  char text[SUITE_TEXT_BYTES + 32];
  snprintf(text, sizeof text, "%zu: %s", bytes, detail);
  if (right)
    suite_record_fact(path->session, path->cell, "working", "", mine[2] / (mine[2] + mine[3] + 1),
                      text);
  return right;
}

static const char* measure_size(void* context, size_t bytes) {
  apex_t* apex = context;
  suite_path_t* path = &apex->path;
  suite_times_t times;
  apex->block = bytes / sizeof(double);
  if (bytes % sizeof(double) != 0 || apex->words % apex->block != 0)
    return "blocks are of 8-byte words, and whole ones make up each rank's part";
  const char* refused = suite_agree(path->session, &path->comm, suite_path_size(path, bytes));
  if (refused != NULL) return refused;
  apex->accesses = kWordsOfAPass / apex->block;
  if (apex->accesses > kMostAccesses) apex->accesses = kMostAccesses;
  if (apex->accesses < kLeastAccesses) apex->accesses = kLeastAccesses;
  apex->passes = apex->block <= 64 ? kMostPasses : apex->block <= 1024 ? 2 : 1;
  prepare(apex);
  apex->next = 0;
  apex->sum = apex->expected = 0;
  apex->working_ns = apex->waiting_ns = 0;
  SUITE_CHECK(path, suite_library.settle(&path->window));
  SUITE_CHECK(path, suite_time(path->session, &path->comm, repeat, apex, &times));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  suite_times_divide(&times, (double)(apex->accesses * apex->passes));
  if (check(apex, bytes)) suite_record_samples(path->session, path->cell, NULL, bytes, &times);
  suite_times_free(&times);
  return NULL;
}

/* Whether this rank can load from all others. */
static int reaches_all(apex_t* apex) {
  suite_path_t* path = &apex->path;
  for (int rank = 0; rank < path->comm.size; rank++)
    if (path->transfer->reach(&path->window, rank, path->area[0]) == NULL) return 0;
  return 1;
}

static const char* unsuitable(apex_t* apex) {
  const suite_transfer_block_t* transfer = apex->path.transfer;
  if (!(apex->k > 0 && apex->k <= 1)) return "k is more than 0 and at most 1";
  if (suite_is_two_sided(transfer))
    return apex_message_passes != NULL ? NULL : "this library has no messages";
  if (transfer->effect != SUITE_GETS) return "APEX-Map reads";
  if (transfer->reach != NULL)
    return reaches_all(apex) ? NULL : "this memory of others cannot be reached by loads";
  if (suite_is_load(transfer)) return NULL;
  return apex->path.sync->passive ? NULL : "the synchronisation must be passive";
}

static const char* measure_cell(apex_t* apex, suite_session_t* session, const suite_cell_t* cell) {
  size_t bytes = suite_option_number(cell, "m", 16 << 20);
  if (bytes > SUITE_MOST_BYTES) return "m is at most 256 MiB";
  apex->k = strtod(suite_option(cell, "k", "1"), NULL);
  apex->words = bytes / sizeof(double);
  const char* refused = suite_path_open(session, cell, bytes, &apex->path);
  if (refused != NULL) return refused;
  refused = suite_agree(session, &apex->path.comm, unsuitable(apex));
  double* own = (double*)(void*)(apex->path.window.base + apex->path.area[0]);
  for (size_t i = 0; i < apex->words; i++)
    own[i] = apex_value((uint64_t)apex->path.comm.rank * apex->words + i);
  apex->buffer = malloc(bytes);
  for (int i = 0; i < APEX_ARRAYS; i++) apex->indices[i] = malloc(kMostAccesses * sizeof(uint64_t));
  if (apex->buffer == NULL || apex->indices[APEX_ARRAYS - 1] == NULL) abort();
  memset(apex->buffer, 0, bytes);
  if (refused == NULL) refused = suite_each_size(session, measure_size, apex);
  free(apex->buffer);
  for (int i = 0; i < APEX_ARRAYS; i++) free(apex->indices[i]);
  suite_path_close(&apex->path);
  return refused;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  apex_t* apex = calloc(1, sizeof *apex);
  if (apex == NULL) abort();
  const char* refused = measure_cell(apex, session, cell);
  free(apex);
  return refused;
}

static suite_experiment_block_t apex_block = {
    {SUITE_EXPERIMENT, "apex", "APEX-Map: reading a global array (paper 4)", NULL}, measure};
SUITE_REGISTER(apex_block)
