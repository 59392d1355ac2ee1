/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any MPI from 3.0 on. Compiled with each library's own mpicc.
 *
 * The rules of MPI and the reasons for this design (sections of MPI 4.1):
 *
 * - flush: one lock_all epoch for the whole cell. Polling the own window with plain loads is
 * allowed while the epoch is open, and in the unified memory model (12.4, the window says which it
 * has) a put becomes visible to them without a call; MPI_Win_sync then orders the flag before the
 * data. In the separate model MPI_Win_sync stands in front of every load.
 * - lock: one lock/unlock pair per operation. The lock is shared and the poller holds a shared lock
 *   of its own window for the whole cell, which makes its loads and MPI_Win_sync legal. With
 *   exclusive locks the poller would have to give up its lock between polls, and each poll would
 *   stand in the way of the operation it waits for.
 * - fence: each fence ends one epoch and begins the next, so a leg has one.
 * - pscw: the origin is in start … complete, the target in post … wait.
 * - Not every library completes an operation at a target that makes no calls (12.7.3 lets it wait
 *   for one). The poller therefore calls MPI_Iprobe every kPollsPerCall polls. Measured on MPICH 5
 *   and Open MPI 5: with 1 to 64 polls, memory that needs the calls and memory that does not are as
 *   fast as each can be; with 256 the former is some percent slower, with 1024 up to twice.
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "loops.h"

const char probe_adapter_name[] = "mpi";

enum { kNoteTag = 1, kDataTag = 2 };

typedef struct library {
  const probe_cell_t* cell;
  MPI_Comm comm;
  MPI_Group peer_group;
  MPI_Win win;
  void* created; /* memory for MPI_Win_create, or for send and receive */
  int peer;
  int separate; /* the window has two copies: plain loads need MPI_Win_sync first */
} library_t;

const size_t probe_state_bytes = sizeof(library_t);

/* ---- steps ---- */

#define TRY(call)                                   \
  do {                                              \
    int try_error = (call);                         \
    if (try_error != MPI_SUCCESS) return try_error; \
  } while (0)

static PROBE_INLINE int start_put(library_t* library, probe_transfer_t* transfer) {
  return MPI_Put(transfer->data, (int)transfer->bytes, MPI_BYTE, library->peer,
                 (MPI_Aint)transfer->peer_data_offset, (int)transfer->bytes, MPI_BYTE,
                 library->win);
}

static PROBE_INLINE int start_get(library_t* library, probe_transfer_t* transfer) {
  return MPI_Get(transfer->data, (int)transfer->bytes, MPI_BYTE, library->peer,
                 (MPI_Aint)transfer->peer_data_offset, (int)transfer->bytes, MPI_BYTE,
                 library->win);
}

static PROBE_INLINE int start_flag(library_t* library, probe_transfer_t* transfer) {
  transfer->sent++;
  return MPI_Put(&transfer->sent, 1, MPI_UINT64_T, library->peer,
                 (MPI_Aint)transfer->peer_flag_offset, 1, MPI_UINT64_T, library->win);
}

static PROBE_INLINE int await_flag(probe_rank_t* rank, probe_transfer_t* transfer) {
  enum { kPollsPerCall = 64 };
  library_t* library = rank->state;
  const volatile uint64_t* flag = transfer->flag;
  const uint64_t expected = ++transfer->seen;
  int polls_left = kPollsPerCall;
  while (*flag != expected) {
    if (library->separate) TRY(MPI_Win_sync(library->win));
    if (--polls_left > 0) continue;
    int found;
    TRY(MPI_Iprobe(library->peer, kNoteTag, library->comm, &found, MPI_STATUS_IGNORE));
    polls_left = kPollsPerCall;
  }
  return MPI_Win_sync(library->win);
}

/* The steps of one operation, `start` being MPI_Put or MPI_Get. `publish` makes the result visible
 * to the peer's next operation where it was stored into the own window. */
#define DEFINE_STEPS(operation, start, publish)                                                    \
  static PROBE_INLINE int flush_##operation(probe_rank_t* rank, probe_transfer_t* transfer) {      \
    library_t* library = rank->state;                                                              \
    TRY(start(library, transfer));                                                                 \
    return MPI_Win_flush(library->peer, library->win);                                             \
  }                                                                                                \
  static PROBE_INLINE int flush_turn_##operation(probe_rank_t* rank, probe_transfer_t* transfer) { \
    library_t* library = rank->state;                                                              \
    TRY(flush_##operation(rank, transfer));                                                        \
    TRY(publish);                                                                                  \
    TRY(start_flag(library, transfer));                                                            \
    return MPI_Win_flush(library->peer, library->win);                                             \
  }                                                                                                \
  static PROBE_INLINE int lock_##operation(probe_rank_t* rank, probe_transfer_t* transfer) {       \
    library_t* library = rank->state;                                                              \
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, library->peer, 0, library->win));                            \
    TRY(start(library, transfer));                                                                 \
    return MPI_Win_unlock(library->peer, library->win);                                            \
  }                                                                                                \
  static PROBE_INLINE int lock_turn_##operation(probe_rank_t* rank, probe_transfer_t* transfer) {  \
    library_t* library = rank->state;                                                              \
    TRY(lock_##operation(rank, transfer));                                                         \
    TRY(publish);                                                                                  \
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, library->peer, 0, library->win));                            \
    TRY(start_flag(library, transfer));                                                            \
    return MPI_Win_unlock(library->peer, library->win);                                            \
  }                                                                                                \
  static PROBE_INLINE int fence_turn_##operation(probe_rank_t* rank, probe_transfer_t* transfer) { \
    library_t* library = rank->state;                                                              \
    TRY(start(library, transfer));                                                                 \
    return MPI_Win_fence(0, library->win);                                                         \
  }                                                                                                \
  static PROBE_INLINE int pscw_turn_##operation(probe_rank_t* rank, probe_transfer_t* transfer) {  \
    library_t* library = rank->state;                                                              \
    TRY(MPI_Win_start(library->peer_group, 0, library->win));                                      \
    TRY(start(library, transfer));                                                                 \
    return MPI_Win_complete(library->win);                                                         \
  }

static PROBE_INLINE int fence_await(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  (void)transfer;
  return MPI_Win_fence(0, library->win);
}

static PROBE_INLINE int pscw_await(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  (void)transfer;
  TRY(MPI_Win_post(library->peer_group, 0, library->win));
  return MPI_Win_wait(library->win);
}

static PROBE_INLINE int send_turn(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  return MPI_Send(transfer->data, (int)transfer->bytes, MPI_BYTE, library->peer, kDataTag,
                  library->comm);
}

static PROBE_INLINE int receive_await(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  return MPI_Recv(transfer->data, (int)transfer->bytes, MPI_BYTE, library->peer, kDataTag,
                  library->comm, MPI_STATUS_IGNORE);
}

DEFINE_STEPS(put, start_put, MPI_SUCCESS)
DEFINE_STEPS(get, start_get, MPI_Win_sync(library->win))

PROBE_DEFINE_PINGPONG(pingpong_put_flush, flush_turn_put, await_flag)
PROBE_DEFINE_PINGPONG(pingpong_get_flush, flush_turn_get, await_flag)
PROBE_DEFINE_PINGPONG(pingpong_put_lock, lock_turn_put, await_flag)
PROBE_DEFINE_PINGPONG(pingpong_get_lock, lock_turn_get, await_flag)
PROBE_DEFINE_PINGPONG(pingpong_put_fence, fence_turn_put, fence_await)
PROBE_DEFINE_PINGPONG(pingpong_get_fence, fence_turn_get, fence_await)
PROBE_DEFINE_PINGPONG(pingpong_put_pscw, pscw_turn_put, pscw_await)
PROBE_DEFINE_PINGPONG(pingpong_get_pscw, pscw_turn_get, pscw_await)
PROBE_DEFINE_PINGPONG(pingpong_sendrecv, send_turn, receive_await)
PROBE_DEFINE_COMPLETION(completion_put_flush, flush_put)
PROBE_DEFINE_COMPLETION(completion_get_flush, flush_get)
PROBE_DEFINE_COMPLETION(completion_put_lock, lock_put)
PROBE_DEFINE_COMPLETION(completion_get_lock, lock_get)

static const struct {
  probe_operation_t operation;
  probe_sync_t sync;
  probe_loop_t* pingpong;
  probe_loop_t* completion; /* null: needs calls of the target, so one side alone cannot complete */
} kLoops[] = {
    {PROBE_PUT, PROBE_FLUSH, pingpong_put_flush, completion_put_flush},
    {PROBE_GET, PROBE_FLUSH, pingpong_get_flush, completion_get_flush},
    {PROBE_PUT, PROBE_LOCK, pingpong_put_lock, completion_put_lock},
    {PROBE_GET, PROBE_LOCK, pingpong_get_lock, completion_get_lock},
    {PROBE_PUT, PROBE_FENCE, pingpong_put_fence, NULL},
    {PROBE_GET, PROBE_FENCE, pingpong_get_fence, NULL},
    {PROBE_PUT, PROBE_PSCW, pingpong_put_pscw, NULL},
    {PROBE_GET, PROBE_PSCW, pingpong_get_pscw, NULL},
    {PROBE_SENDRECV, PROBE_NONE, pingpong_sendrecv, NULL},
};

/* ---- adapter ---- */

/* Index in kLoops, or -1. */
static int loops_of(const probe_cell_t* cell) {
  for (int i = 0; i < (int)(sizeof kLoops / sizeof kLoops[0]); i++)
    if (kLoops[i].operation == cell->operation && kLoops[i].sync == cell->sync) return i;
  return -1;
}

probe_loop_t* probe_prepare(probe_rank_t* rank, probe_transfer_t* transfer) {
  library_t* library = rank->state;
  int loops = loops_of(library->cell);
  (void)transfer; /* peers are addressed by offset */
  return library->cell->experiment == PROBE_PINGPONG ? kLoops[loops].pingpong
                                                     : kLoops[loops].completion;
}

const char* probe_explain(probe_rank_t* rank, int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
    snprintf(rank->explained, sizeof rank->explained, "MPI error %d", error);
  else
    snprintf(rank->explained, sizeof rank->explained, "%.*s", length, text);
  for (char* c = rank->explained; *c != '\0'; c++) /* one line, whatever the library wrote */
    if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' ';
  return rank->explained;
}

static int open_window(library_t* library, size_t bytes, void** region) {
  if (library->cell->memory == PROBE_ALLOCATE) {
    TRY(MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, library->comm, region, &library->win));
  } else {
    *region = library->created;
    TRY(MPI_Win_create(library->created, (MPI_Aint)bytes, 1, MPI_INFO_NULL, library->comm,
                       &library->win));
  }
  TRY(MPI_Win_set_errhandler(library->win, MPI_ERRORS_RETURN));

  int* model = NULL;
  int found = 0;
  TRY(MPI_Win_get_attr(library->win, MPI_WIN_MODEL, &model, &found));
  library->separate = !found || *model != MPI_WIN_UNIFIED;

  int rank;
  TRY(MPI_Comm_rank(library->comm, &rank));
  switch (library->cell->sync) {
    case PROBE_FLUSH:
      return MPI_Win_lock_all(0, library->win);
    case PROBE_LOCK:
      return MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, library->win);
    case PROBE_FENCE:
      return MPI_Win_fence(0, library->win);
    default:
      return MPI_SUCCESS;
  }
}

const char* probe_open(probe_rank_t* rank, const probe_cell_t* cell, size_t bytes, void** region) {
  library_t* library = rank->state;
  int loops = loops_of(cell);
  if (loops < 0) return "MPI has put and get with flush, fence, pscw and lock, and sendrecv:none";
  if (cell->experiment == PROBE_COMPLETION && kLoops[loops].completion == NULL)
    return "needs calls of the target too: there is no completion by one side";
  if ((cell->memory == PROBE_LOCAL) != (cell->operation == PROBE_SENDRECV))
    return "put and get need a window (allocate, create), sendrecv has none (local)";

  library->cell = cell;
  library->win = MPI_WIN_NULL;
  library->created = NULL;
  if (cell->memory != PROBE_ALLOCATE) {
    library->created = malloc(bytes);
    if (library->created == NULL) return "malloc has no memory for the region";
    memset(library->created, 0, bytes);
    *region = library->created;
  }
  if (cell->memory == PROBE_LOCAL) return NULL;
  int error = open_window(library, bytes, region);
  if (error == MPI_SUCCESS) return NULL;
  /* Freeing the window is collective, and the peer may have had no error: the window stays, and so
   * must its memory. */
  if (library->win == MPI_WIN_NULL) free(library->created);
  return probe_explain(rank, error);
}

int probe_settle(probe_rank_t* rank) {
  library_t* library = rank->state;
  switch (library->cell->sync) {
    case PROBE_FLUSH:
    case PROBE_LOCK:
      TRY(MPI_Win_sync(library->win));
      TRY(MPI_Barrier(library->comm));
      return MPI_Win_sync(library->win);
    case PROBE_FENCE:
      TRY(MPI_Win_fence(0, library->win));
      return MPI_Barrier(library->comm);
    default:
      return MPI_Barrier(library->comm);
  }
}

int probe_close(probe_rank_t* rank) {
  library_t* library = rank->state;
  if (library->win != MPI_WIN_NULL) {
    if (library->cell->sync == PROBE_FLUSH) TRY(MPI_Win_unlock_all(library->win));
    if (library->cell->sync == PROBE_LOCK) TRY(MPI_Win_unlock(rank->rank, library->win));
    if (library->cell->sync == PROBE_FENCE) TRY(MPI_Win_fence(MPI_MODE_NOSUCCEED, library->win));
    TRY(MPI_Win_free(&library->win));
  }
  free(library->created);
  library->created = NULL;
  return MPI_SUCCESS;
}

int probe_exchange(probe_rank_t* rank, const probe_note_t* mine, probe_note_t* theirs) {
  library_t* library = rank->state;
  return MPI_Sendrecv(mine, (int)sizeof *mine, MPI_BYTE, library->peer, kNoteTag, theirs,
                      (int)sizeof *theirs, MPI_BYTE, library->peer, kNoteTag, library->comm,
                      MPI_STATUS_IGNORE);
}

void probe_abort(probe_rank_t* rank, int status) {
  library_t* library = rank->state;
  MPI_Abort(library->comm, status);
  _Exit(status);
}

/* The library's name is the text before its version: "Open MPI v5.0.8, …",
 * "MPICH Version:      5.0.2", "Intel(R) MPI Library 2021.17 for …". */
static void name_library(probe_rank_t* rank) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n\r")] = '\0';
  for (char* tab = text; (tab = strchr(tab, '\t')) != NULL;) *tab = ' ';
  snprintf(rank->version, sizeof rank->version, "%.*s", (int)sizeof rank->version - 1, text);

  size_t end = 0;
  while (
      text[end] != '\0' && text[end] != ',' &&
      !(text[end] == ' ' && strchr("0123456789", text[end + 1 + (text[end + 1] == 'v')]) != NULL))
    end++;
  char* version = strstr(text, " Version");
  if (version != NULL && (size_t)(version - text) < end) end = (size_t)(version - text);
  snprintf(rank->library, sizeof rank->library, "%.*s",
           end < sizeof rank->library ? (int)end : (int)sizeof rank->library - 1, text);
}

static int join(probe_rank_t* rank, library_t* library) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  TRY(MPI_Comm_dup(MPI_COMM_WORLD, &library->comm));
  TRY(MPI_Comm_set_errhandler(library->comm, MPI_ERRORS_RETURN));
  TRY(MPI_Comm_rank(library->comm, &rank->rank));
  TRY(MPI_Comm_size(library->comm, &rank->size));
  library->peer = 1 - rank->rank;
  if (rank->size != PROBE_RANKS) return MPI_SUCCESS;
  MPI_Group all;
  TRY(MPI_Comm_group(library->comm, &all));
  TRY(MPI_Group_incl(all, 1, &library->peer, &library->peer_group));
  return MPI_Group_free(&all);
}

int probe_launch(int argc, char** argv, probe_main_t* main, const void* context) {
  probe_rank_t rank;
  library_t library;
  memset(&rank, 0, sizeof rank);
  memset(&library, 0, sizeof library);
  rank.state = &library;
  library.comm = MPI_COMM_WORLD;
  library.peer_group = MPI_GROUP_NULL;
  library.win = MPI_WIN_NULL;
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {
    fprintf(stderr, "probe_mpi: MPI_Init failed\n");
    return 1;
  }
  int error = join(&rank, &library);
  if (error != MPI_SUCCESS) {
    fprintf(stderr, "probe_mpi: %s\n", probe_explain(&rank, error));
    probe_abort(&rank, 1);
  }
  name_library(&rank);
  int status = main(&rank, context);
  if (library.peer_group != MPI_GROUP_NULL) MPI_Group_free(&library.peer_group);
  MPI_Comm_free(&library.comm);
  MPI_Finalize();
  return status;
}
