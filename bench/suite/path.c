/* SPDX-License-Identifier: BSD-3-Clause */

/* Opens the blocks of a cell, one after the other; all ranks agree on the result. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gethostname */
#endif

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

enum { kPage = 4096, kOddPlace = 17 * 64 };

static char agreed[SUITE_TEXT_BYTES];

const char* suite_agree(suite_session_t* session, suite_comm_t* comm, const char* problem) {
  char mine[SUITE_TEXT_BYTES] = "";
  if (problem != NULL)
    snprintf(mine, sizeof mine, "%s", problem[0] != '\0' ? problem : "no reason");
  char* all = calloc((size_t)comm->size, sizeof mine);
  if (all == NULL) abort();
  int error = suite_library.gather(comm, mine, all, sizeof mine);
  if (error != 0) {
    fprintf(stderr, "suite_%s: %s\n", suite_library.name, suite_library.explain(error));
    suite_library.abort(session->job, 1);
  }
  agreed[0] = '\0';
  for (int rank = 0; rank < comm->size && agreed[0] == '\0'; rank++)
    memcpy(agreed, all + (size_t)rank * sizeof mine, sizeof mine);
  free(all);
  return agreed[0] != '\0' ? agreed : NULL;
}

void suite_stop(suite_session_t* session, const suite_cell_t* cell, const char* why) {
  suite_record_text(session, "refused", cell, "reason", why);
  fprintf(stderr, "suite_%s: rank %d: %s: %s\n", suite_library.name, session->job->rank, cell->name,
          why);
  suite_library.abort(session->job, 1);
  _Exit(1);
}

void suite_give_up(suite_session_t* session, const suite_cell_t* cell, int error) {
  suite_stop(session, cell, suite_library.explain(error));
}

size_t suite_area_bytes(const suite_cell_t* cell, size_t bytes) {
  suite_type_t type;
  const suite_type_block_t* block =
      (const suite_type_block_t*)suite_find(SUITE_TYPE, suite_option(cell, "type", "byte"));
  memset(&type, 0, sizeof type);
  size_t extent = bytes;
  if (block != NULL && block->lay_out(cell, bytes, &type) == NULL) extent = type.extent;
  free(type.runs);
  extent += 64 * suite_option_number(cell, "n", 1); /* room to round up each piece */
  return (extent + 2 * SUITE_GUARD_BYTES + 4095) / 4096 * 4096;
}

/* The name of the synchronisation's block. Where the flag is behind the data, each fence ends one
 * epoch and begins the next. */
static const char* sync_of(const suite_path_t* path, const suite_cell_t* cell) {
  return path->legs == SUITE_IN_PLACE && strcmp(cell->sync, "fence") == 0 ? "one-fence"
                                                                          : cell->sync;
}

static const char* find_blocks(suite_path_t* path, const suite_cell_t* cell, char* text) {
  struct {
    suite_kind_t kind;
    const char *what, *name;
    const void** block;
  } wanted[] = {
      {SUITE_COMMUNICATOR, "communicator", suite_option(cell, "comm", "world"),
       (const void**)&path->communicator},
      {SUITE_MEMORY, "memory", cell->memory, (const void**)&path->memory},
      {SUITE_SYNC, "synchronisation", sync_of(path, cell), (const void**)&path->sync},
      {SUITE_TRANSFER, "transfer", cell->transfer, (const void**)&path->transfer},
      {SUITE_TYPE, "datatype", suite_option(cell, "type", "byte"), (const void**)&path->type_block},
      {SUITE_PARTNER, "partner",
       suite_option(cell, "partner", path->legs == SUITE_ONE_SIDE ? "one-way" : "pair"),
       (const void**)&path->partner},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    *wanted[i].block = suite_find(wanted[i].kind, wanted[i].name);
    if (*wanted[i].block != NULL) continue;
    snprintf(text, SUITE_TEXT_BYTES, "%s has no %s '%s'", suite_library.name, wanted[i].what,
             wanted[i].name);
    return text;
  }
  if (suite_has_loops_only(path->transfer))
    return path->legs == SUITE_APART ? "pingpong and completion alone measure this transfer" : NULL;
  int two_sided = suite_is_two_sided(path->transfer), none = strcmp(cell->sync, "none") == 0;
  if (two_sided && !none) return "two-sided transfers synchronise by themselves: sync is none";
  if (two_sided != (strcmp(cell->memory, "local") == 0))
    return "memory is local for two-sided transfers, and for no other";
  if (!two_sided && none && path->transfer->start != NULL)
    return "one-sided transfers need a synchronisation";
  if (path->legs == SUITE_APART) return NULL;
  suite_effect_t effect = path->transfer->effect;
  if (effect != SUITE_PUTS && effect != SUITE_GETS && effect != SUITE_MESSAGES)
    return "only transfers that move bytes can take them back to the same place";
  if (path->legs == SUITE_ONE_SIDE && (two_sided || path->sync->complete == NULL))
    return "needs calls of the target too: there is no completion by one side";
  return NULL;
}

static int open_window(suite_path_t* path, size_t largest) {
  suite_window_t* window = &path->window;
  size_t flags = ((size_t)path->comm.size * sizeof(uint64_t) + 4095) / 4096 * 4096;
  size_t area = suite_area_bytes(path->cell, largest);
  /* The largest size may be refused, and other layouts are longer than contiguous bytes. */
  for (int i = 0; i < path->session->size_count; i++) {
    size_t other = suite_area_bytes(path->cell, path->session->sizes[i]);
    if (other > area) area = other;
  }
  /* Two areas for the data, and two for packing by hand; or one. */
  int apart = path->legs == SUITE_APART;
  window->comm = &path->comm;
  window->bytes = flags + (apart ? 4 : 1) * area + kPage;
  window->flag_step = sizeof(uint64_t);
  window->bases = calloc((size_t)path->comm.size, 3 * sizeof(uint64_t));
  if (window->bases == NULL) abort();
  window->sent = window->bases + path->comm.size;
  window->seen = window->sent + path->comm.size;
  for (int i = 0; i < 2; i++) {
    path->area[i] = flags + (size_t)(apart ? i : 0) * area + SUITE_GUARD_BYTES;
    path->stage[i] = flags + (size_t)(2 + i) * area + SUITE_GUARD_BYTES;
  }
  path->result = malloc(area);
  if (path->result == NULL) abort();
  memset(path->result, 0, area);
  return path->memory->open(window);
}

/* Lets the window begin at the same place of a page in every library, so that data lie alike. Odd
 * ranks have another place: a processor that stores to one address and loads from another with the
 * same place in its page may take them for the same, which depends on where the program lies. */
static int begin_alike(suite_path_t* path) {
  suite_window_t* window = &path->window;
  uint64_t *all = calloc((size_t)path->comm.size, sizeof *all), mine;
  if (all == NULL) abort();
  const size_t place = path->comm.rank % 2 == 0 ? 0 : kOddPlace;
  path->moved = (place - (size_t)(uintptr_t)window->base) % kPage;
  mine = path->moved;
  int error = suite_library.gather(&path->comm, &mine, all, sizeof mine);
  for (int rank = 0; rank < path->comm.size; rank++) window->bases[rank] += all[rank];
  free(all);
  window->base += path->moved;
  window->bytes -= kPage;
  return error;
}

/* Whether this rank's partners are on other hosts, according to the hosts' names. */
static const char* check_hosts(suite_path_t* path) {
  enum { kNameBytes = 256 };
  int size = path->comm.size, rank = path->comm.rank, to = SUITE_NOBODY, from = SUITE_NOBODY;
  char mine[kNameBytes] = "", *all = calloc((size_t)size, kNameBytes);
  if (all == NULL) abort();
  gethostname(mine, sizeof mine - 1);
  SUITE_CHECK(path, suite_library.gather(&path->comm, mine, all, sizeof mine));
  path->partner->partners(rank, size, 0, &to, &from);
  int peer = to != SUITE_NOBODY ? to : from;
  int same = peer != SUITE_NOBODY && strcmp(mine, all + (size_t)peer * kNameBytes) == 0;
  free(all);
  return suite_agree(path->session, &path->comm,
                     same ? "partner 'hosts' is for pairs of ranks on different hosts" : NULL);
}

static int find_leader(suite_path_t* path) {
  int writes = path->session->out != NULL, *all = calloc((size_t)path->comm.size, sizeof *all);
  if (all == NULL) abort();
  int error = suite_library.gather(&path->comm, &writes, all, sizeof writes);
  for (int rank = 0; rank < path->comm.size; rank++)
    if (all[rank]) path->comm.leader = rank;
  free(all);
  return error;
}

const char* suite_path_open(suite_session_t* session, const suite_cell_t* cell, size_t largest,
                            suite_path_t* path) {
  static char text[SUITE_TEXT_BYTES];
  memset(path, 0, sizeof *path);
  path->session = session;
  path->cell = cell;
  path->legs = suite_legs_kind_of(cell);
  const char* problem = find_blocks(path, cell, text);
  if (problem != NULL) return problem; /* the same at every rank */
  int error = path->communicator->open(session->job, cell, &path->comm);
  if (error != 0) {
    problem = suite_agree(session, &session->world, suite_library.explain(error));
    return problem;
  }
  if (!session->job->child && suite_agree(session, &session->world, NULL) != NULL) return agreed;
  path->has_comm = 1;
  SUITE_CHECK(path, find_leader(path));
  if (path->comm.size < path->partner->least) {
    snprintf(text, sizeof text, "partner '%s' needs %d ranks, there are %d",
             path->partner->head.name, path->partner->least, path->comm.size);
    return suite_path_close(path), text;
  }
  if (path->legs != SUITE_APART && path->comm.size != 2) {
    snprintf(text, sizeof text, "%s is between 2 ranks, there are %d: start it with -n 2",
             cell->experiment, path->comm.size);
    return suite_path_close(path), text;
  }
  if (strcmp(path->partner->head.name, "hosts") == 0 && check_hosts(path) != NULL) {
    snprintf(text, sizeof text, "%s", agreed);
    return suite_path_close(path), text;
  }
  error = open_window(path, largest);
  problem = suite_agree(session, &path->comm, error != 0 ? suite_library.explain(error) : NULL);
  /* Freeing is collective: if only other ranks failed, this rank must keep its blocks open. */
  if (problem != NULL) return problem;
  path->has_window = 1;
  SUITE_CHECK(path, begin_alike(path));
  memset(path->window.base, 0, path->window.bytes);
  if (path->sync->open != NULL) {
    error = path->sync->open(&path->window);
    problem = suite_agree(session, &path->comm, error != 0 ? suite_library.explain(error) : NULL);
    if (problem != NULL) return problem;
  }
  path->has_sync = 1;
  error = suite_library.settle(&path->window);
  problem = suite_agree(session, &path->comm, error != 0 ? suite_library.explain(error) : NULL);
  return problem;
}

static void free_type(suite_path_t* path) {
  if (path->wire.native != NULL && suite_library.free_type != NULL)
    suite_library.free_type(&path->wire);
  free(path->type.runs);
  memset(&path->wire, 0, sizeof path->wire);
  memset(&path->type, 0, sizeof path->type);
}

const char* suite_path_close(suite_path_t* path) {
  int error = 0;
  free_type(path);
  if (path->has_sync && path->sync->close != NULL) error = path->sync->close(&path->window);
  path->window.base -= path->moved;
  path->window.bytes += kPage;
  if (error == 0 && path->has_window) error = path->memory->close(&path->window);
  if (error == 0 && path->has_comm) error = path->communicator->close(&path->comm);
  free(path->window.bases);
  free(path->result);
  memset(&path->window, 0, sizeof path->window);
  path->result = NULL;
  path->has_comm = path->has_window = path->has_sync = 0;
  if (error != 0) suite_give_up(path->session, path->cell, error);
  return NULL;
}

/* The rank with which this one exchanges data in pairs. */
static int peer_of(const suite_path_t* path) { return 1 - path->comm.rank; }

/* Puts the flag behind the data, at the next multiple of 8, so that a small message and its flag
 * share a cache line. It begins with a number of its size, so that a copy of it shows. */
static void place_flag(suite_path_t* path) {
  suite_window_t* window = &path->window;
  window->flags = path->area[0] + (path->type.bytes + 7) / 8 * 8;
  window->flag_step = 0;
  for (int i = 0; i < 2; i++) {
    int sender = i == 0 ? path->comm.rank : peer_of(path);
    uint64_t first = suite_mix(suite_mix(path->session->seed, path->type.bytes), (uint64_t)sender);
    (i == 0 ? window->sent : window->seen)[peer_of(path)] = first >> 2; /* room to count */
  }
  memcpy(window->base + window->flags, &window->seen[peer_of(path)], sizeof *window->seen);
}

/* Finds a loop for the legs of a pair of ranks with contiguous data. */
static void find_loop(suite_path_t* path) {
  suite_window_t* window = &path->window;
  suite_spot_t* spot = &path->spot;
  const suite_loop_block_t* loops =
      suite_find_loops(path->transfer->head.name, path->sync->head.name, path->type.bytes);
  int pair = path->comm.size == 2 &&
             (path->legs == SUITE_ONE_SIDE || strcmp(path->partner->head.name, "pair") == 0);
  path->loop = NULL;
  if (loops == NULL || !pair || strcmp(path->wire.name, "byte") != 0 || path->by_hand ||
      path->pieces != 1)
    return;
  path->loop = path->legs == SUITE_ONE_SIDE ? loops->one_side : loops->there_and_back;
  memset(spot, 0, sizeof *spot);
  spot->window = window;
  spot->state = window->state;
  spot->peer = peer_of(path);
  spot->own = path->comm.rank;
  spot->bytes = path->type.bytes;
  spot->flag = (const uint64_t*)(const void*)(window->base + suite_flag(window, spot->peer));
  spot->far_flag = window->bases[spot->peer] + suite_flag(window, spot->own);
  if (path->loop != NULL && suite_library.prepare != NULL) suite_library.prepare(spot);
}

const char* suite_path_size(suite_path_t* path, size_t bytes) {
  free_type(path);
  const char* hand = suite_option(path->cell, "pack", "");
  path->pieces = suite_option_number(path->cell, "n", 1);
  path->by_hand = strcmp(hand, "hand") == 0;
  if (path->pieces == 0 || bytes % path->pieces != 0) return "the size is no multiple of n";
  const char* problem = path->type_block->lay_out(path->cell, bytes / path->pieces, &path->type);
  if (problem != NULL) return problem;
  path->type.name = path->type_block->head.name;
  path->piece_extent = path->type.extent;
  suite_effect_t effect = path->transfer->effect;
  int adds = effect == SUITE_ADDS || effect == SUITE_FETCH_ADDS;
  if (adds && path->type.element_bytes == 1)
    path->type.element_bytes = path->type.bytes % 8 == 0 ? 8 : path->type.bytes % 4 == 0 ? 4 : 1;
  if (path->transfer->one_word) {
    int word = path->type.bytes == 8 || (path->type.bytes == 4 && effect != SUITE_SWAPS);
    if (!word || path->type.run_count != 1) return "this transfer is of one word";
    path->type.element_bytes = path->type.bytes;
  }
  if (path->by_hand && effect != SUITE_PUTS && effect != SUITE_MESSAGES)
    return "packing by hand needs the target's part for this transfer";
  path->wire = path->type;
  if (path->by_hand) {
    path->wire_run.offset = 0;
    path->wire_run.bytes = path->type.bytes;
    path->wire.runs = &path->wire_run;
    path->wire.run_count = 1;
    path->wire.name = "byte";
  }
  if (path->legs != SUITE_APART) {
    if (path->pieces != 1 || strcmp(path->wire.name, "byte") != 0)
      return "only bytes in a row, in one transfer, go back to the same place";
    place_flag(path);
  }
  find_loop(path);
  if (path->loop == NULL && suite_has_loops_only(path->transfer))
    return path->legs == SUITE_ONE_SIDE ? "this library has no such transfer by one side"
                                        : "this library has no such transfer there and back";
  int error = suite_library.make_type != NULL ? suite_library.make_type(&path->wire) : 0;
  return error != 0 ? suite_library.explain(error) : NULL;
}

const char* suite_each_size(const suite_session_t* session, suite_size_t measure, void* context) {
  static char reason[SUITE_TEXT_BYTES];
  int measured = 0;
  for (int i = 0; i < session->size_count; i++) {
    const char* why = measure(context, session->sizes[i]);
    if (why == NULL)
      measured++;
    else
      snprintf(reason, sizeof reason, "%zu bytes: %s", session->sizes[i], why);
  }
  return measured > 0 ? NULL : reason;
}
