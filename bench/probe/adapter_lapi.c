/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * LAPI on Möbius (docs/fronts/lapi.md), as the programs of paper 1 used it: a put increments a
 * counter at the target, which waits for it, and one at the origin. There is no flag. A get is
 * measured from one side, as in paper 1: LAPI signals the target of a get too early.
 *
 * Memory "allocate" is a static array of the program, "create" comes from malloc().
 */

#include <mobius/job.h>
#include <mobius/memory.h>
#include <mobius/rma.h>

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "loops.h"

const char probe_adapter_name[] = "lapi";

enum { PAGE = 4096, STATIC_BYTES = 20 << 20 };

static unsigned char static_region[STATIC_BYTES] __attribute__((aligned(PAGE)));
static size_t static_used; /* the array is divided among the cells that are open */
static int static_users;
static lapi_cntr_t arrived;   /* incremented by the peer */
static lapi_cntr_t completed; /* incremented by own operations */
static probe_note_t board;    /* for notes of the peer */

typedef struct library {
  lapi_handle_t handle;
  const probe_cell_t* cell;
  unsigned peer;
  void* region;
  void* peers[PROBE_RANKS]; /* regions */
  lapi_cntr_t* peer_arrived;
  probe_note_t* peer_board;
} library_t;

const size_t probe_state_bytes = sizeof(library_t);

/* ---- steps ---- */

static PROBE_INLINE int put(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  int error = LAPI_Put(library->handle, library->peer, transfer->bytes, transfer->peer_data,
                       transfer->data, NULL, NULL, &completed);
  return error != LAPI_SUCCESS ? error : LAPI_Waitcntr(library->handle, &completed, 1, NULL);
}

static PROBE_INLINE int get(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  int error = LAPI_Get(library->handle, library->peer, transfer->bytes, transfer->peer_data,
                       transfer->data, NULL, &completed);
  return error != LAPI_SUCCESS ? error : LAPI_Waitcntr(library->handle, &completed, 1, NULL);
}

/* The data, then the target's counter, then the origin's. */
static PROBE_INLINE int turn(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  int error = LAPI_Put(library->handle, library->peer, transfer->bytes, transfer->peer_data,
                       transfer->data, library->peer_arrived, NULL, &completed);
  return error != LAPI_SUCCESS ? error : LAPI_Waitcntr(library->handle, &completed, 1, NULL);
}

static PROBE_INLINE int await_counter(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  (void)transfer;
  return LAPI_Waitcntr(library->handle, &arrived, 1, NULL);
}

PROBE_DEFINE_PINGPONG(pingpong_put, turn, await_counter)
PROBE_DEFINE_COMPLETION(completion_put, put)
PROBE_DEFINE_COMPLETION(completion_get, get)

/* ---- adapter ---- */

probe_loop_t* probe_prepare(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  unsigned char* region = library->peers[library->peer];
  transfer->peer_data = region + transfer->peer_data_offset;
  transfer->peer_flag = (uint64_t*)(void*)(region + transfer->peer_flag_offset);
  if (library->cell->experiment == PROBE_PINGPONG) return pingpong_put;
  return library->cell->operation == PROBE_PUT ? completion_put : completion_get;
}

const char* probe_open(probe_rank_t* rank, const probe_cell_t* cell, size_t bytes, void** region) {
  library_t* library = rank->state;
  if (cell->operation != PROBE_PUT && cell->operation != PROBE_GET)
    return "LAPI offers put and get";
  if (cell->operation == PROBE_GET && cell->experiment == PROBE_PINGPONG)
    return "a get tells its target too early for a ping-pong";
  if (cell->sync != PROBE_FLUSH)
    return "LAPI synchronises by counters, which are measured as flush";
  if (cell->memory == PROBE_ALLOCATE) {
    if (bytes > sizeof static_region - static_used) return "the probe's static array is smaller";
    library->region = static_region + static_used;
    static_used += (bytes + PAGE - 1) / PAGE * PAGE;
    static_users++;
    memset(library->region, 0, bytes);
  } else if (cell->memory == PROBE_CREATE) {
    void* memory = NULL;
    if (posix_memalign(&memory, PAGE, bytes) != 0) return "no memory";
    library->region = memset(memory, 0, bytes);
  } else {
    return "LAPI reaches memory of any kind; measured are static memory and that of malloc()";
  }
  library->cell = cell;
  LAPI_Setcntr(library->handle, &arrived, 0);
  LAPI_Setcntr(library->handle, &completed, 0);
  int error = LAPI_Address_init(library->handle, library->region, library->peers);
  if (error != LAPI_SUCCESS) return probe_explain(rank, error);
  *region = library->region;
  return NULL;
}

int probe_close(probe_rank_t* rank) {
  library_t* library = rank->state;
  int error = LAPI_Gfence(library->handle);
  if (library->cell->memory != PROBE_ALLOCATE)
    free(library->region);
  else if (--static_users == 0)
    static_used = 0;
  library->region = NULL;
  return error;
}

int probe_settle(probe_rank_t* rank) {
  library_t* library = rank->state;
  return LAPI_Gfence(library->handle);
}

int probe_exchange(probe_rank_t* rank, const probe_note_t* mine, probe_note_t* theirs) {
  library_t* library = rank->state;
  probe_note_t note = *mine;
  int error = LAPI_Put(library->handle, library->peer, sizeof note, library->peer_board, &note,
                       NULL, NULL, NULL);
  if (error == LAPI_SUCCESS) error = LAPI_Gfence(library->handle);
  if (error != LAPI_SUCCESS) return error;
  memcpy(theirs, &board, sizeof board);
  return LAPI_Gfence(library->handle); /* from now on the next note may overwrite this one */
}

const char* probe_explain(probe_rank_t* rank, int error) {
  char text[LAPI_MAX_ERR_STRING];
  LAPI_Msg_string(error, text);
  snprintf(rank->explained, sizeof rank->explained, "%.*s", (int)sizeof rank->explained - 1, text);
  return rank->explained;
}

void probe_abort(probe_rank_t* rank, int status) {
  (void)rank;
  mob_abort(status, "the probe gave up");
}

int probe_launch(int argc, char** argv, probe_main_t* main, const void* context) {
  static probe_rank_t rank;
  static library_t library;
  lapi_info_t info;
  void* table[64];
  int size = 0;
  (void)argc;
  (void)argv;
  memset(&info, 0, sizeof info);
  if (LAPI_Init(&library.handle, &info) != LAPI_SUCCESS) {
    fprintf(stderr, "probe_lapi: %s\n", mob_last_error());
    return 1;
  }
  LAPI_Qenv(library.handle, TASK_ID, &rank.rank);
  LAPI_Qenv(library.handle, NUM_TASKS, &size);
  rank.size = size;
  rank.state = &library;
  snprintf(rank.library, sizeof rank.library, "lapi");
  snprintf(rank.version, sizeof rank.version, "%s", mob_version());
  library.peer = (unsigned)(1 - rank.rank);
  if (size == PROBE_RANKS) {
    LAPI_Address_init(library.handle, &arrived, table);
    library.peer_arrived = table[library.peer];
    LAPI_Address_init(library.handle, &board, table);
    library.peer_board = table[library.peer];
  }
  int status = main(&rank, context);
  return LAPI_Term(library.handle) == LAPI_SUCCESS ? status : 1;
}
