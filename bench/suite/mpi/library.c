/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "mpi_blocks.h"

int mpi_comm_wrap(suite_job_t* job, MPI_Comm all, suite_comm_t* comm) {
  mpi_comm_t* state = calloc(1, sizeof *state);
  if (state == NULL) return SUITE_MPI_NO_MEMORY;
  memset(comm, 0, sizeof *comm);
  state->all = state->pair = all;
  comm->job = job;
  comm->state = state;
  TRY(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
  TRY(MPI_Comm_rank(all, &comm->rank));
  return MPI_Comm_size(all, &comm->size);
}

int mpi_comm_unwrap(suite_comm_t* comm) {
  mpi_comm_t* state = mpi_comm_of(comm);
  comm->state = NULL;
  if (state->pair != state->all) TRY(MPI_Comm_free(&state->pair));
  TRY(MPI_Comm_free(&state->all));
  free(state);
  return MPI_SUCCESS;
}

/* The library's name is the text before its version. */
static void name_library(suite_job_t* job) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n\r\"\\")] = '\0';
  for (char* tab = text; (tab = strchr(tab, '\t')) != NULL;) *tab = ' ';
  snprintf(job->version, sizeof job->version, "%.*s", (int)sizeof job->version - 1, text);
  snprintf(job->library, sizeof job->library, "%.*s", (int)strcspn(text, " ,"), text);
}

static int init(int* argc, char*** argv, suite_job_t* job) {
  TRY(MPI_Init(argc, argv));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  TRY(MPI_Comm_rank(MPI_COMM_WORLD, &job->rank));
  TRY(MPI_Comm_size(MPI_COMM_WORLD, &job->size));
  if (mpi_is_spawned != NULL) TRY(mpi_is_spawned(&job->child));
  name_library(job);
  return MPI_SUCCESS;
}

static int leave(suite_job_t* job) {
  (void)job;
  return MPI_Finalize();
}

static void stop(suite_job_t* job, int status) {
  (void)job;
  MPI_Abort(MPI_COMM_WORLD, status);
  _Exit(status);
}

static int world(suite_job_t* job, suite_comm_t* comm) {
  MPI_Comm own;
  TRY(MPI_Comm_dup(MPI_COMM_WORLD, &own));
  return mpi_comm_wrap(job, own, comm);
}

static int barrier(suite_comm_t* comm) { return MPI_Barrier(mpi_comm_of(comm)->all); }

static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  return MPI_Bcast(data, (int)bytes, MPI_BYTE, root, mpi_comm_of(comm)->all);
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                       mpi_comm_of(comm)->all);
}

static const char* explain(int error) {
  static char text[MPI_MAX_ERROR_STRING + 1];
  int length = 0;
  switch (error) {
    case SUITE_MPI_NO_MEMORY:
      return "no memory";
    case SUITE_MPI_NEEDS_TWO:
      return "this communicator is of two processes";
    case SUITE_MPI_NEEDS_ONE:
      return "this communicator begins with one process";
    case SUITE_MPI_STATIC_FULL:
      return "more bytes than the static memory of the suite has";
    case SUITE_MPI_NOT_ONE_HOST:
      return "not all ranks share memory";
    case SUITE_MPI_NO_PROGRAM:
      return "the name of the own program is not known";
    case SUITE_MPI_NO_MEETING:
      return "two programs meet by --port-file, and this one has none";
    case SUITE_MPI_NO_PORT:
      return "the program to connect to has not opened a port";
    default:
      break;
  }
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
    snprintf(text, sizeof text, "MPI error %d", error);
  for (char* c = text; *c != '\0'; c++)
    if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' ';
  return text;
}

/* Synchronises the window's own copies. MPI_Win_sync is allowed in passive epochs only. */
static int sync_own(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  if (state->style == STYLE_ALL || state->style == STYLE_OWN) return MPI_Win_sync(state->win);
  if (state->style != STYLE_LOCKS) return MPI_SUCCESS;
  TRY(MPI_Win_lock(MPI_LOCK_SHARED, window->comm->rank, 0, state->win));
  TRY(MPI_Win_sync(state->win));
  return MPI_Win_unlock(window->comm->rank, state->win);
}

static int settle(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  if (state->style == STYLE_FENCE) TRY(MPI_Win_fence(0, state->win));
  TRY(sync_own(window));
  TRY(barrier(window->comm));
  return sync_own(window);
}

static int put_flag(suite_window_t* window, int to) {
  mpi_window_t* state = mpi_window_of(window);
  return MPI_Put(&window->sent[to], 1, MPI_UINT64_T, to,
                 (MPI_Aint)(window->bases[to] + suite_flag(window, window->comm->rank)), 1,
                 MPI_UINT64_T, state->win);
}

static int tell(suite_window_t* window, const suite_sync_block_t* sync, int to) {
  mpi_window_t* state = mpi_window_of(window);
  window->sent[to]++;
  if (state->style == STYLE_ALL) {
    TRY(put_flag(window, to));
    return MPI_Win_flush(to, state->win);
  }
  TRY(sync->enter(window, to, SUITE_NOBODY));
  TRY(put_flag(window, to));
  return sync->leave(window, to, SUITE_NOBODY);
}

static int await(suite_window_t* window, int from) {
  enum { kPollsPerCall = 64 };
  mpi_window_t* state = mpi_window_of(window);
  mpi_comm_t* comm = mpi_comm_of(window->comm);
  const volatile uint64_t* flag =
      (const volatile uint64_t*)(const void*)(window->base + suite_flag(window, from));
  const uint64_t expected = ++window->seen[from];
  int polls_left = kPollsPerCall, found;
  /* Larger than expected if the other rank has already sent its next signal. */
  while ((int64_t)(*flag - expected) < 0) {
    if (state->separate) TRY(sync_own(window));
    if (--polls_left > 0) continue;
    /* Often enough for libraries that need the target's help, without slowing down others. */
    TRY(MPI_Iprobe(MPI_ANY_SOURCE, 77, comm->all, &found, MPI_STATUS_IGNORE));
    polls_left = kPollsPerCall;
  }
  if (state->style == STYLE_ALL || state->style == STYLE_OWN) return MPI_Win_sync(state->win);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return MPI_SUCCESS;
}

/* Messages may go through another communicator than everything else. */
static void prepare(suite_spot_t* spot) {
  if (mpi_window_of(spot->window)->win == MPI_WIN_NULL &&
      mpi_comm_of(spot->window->comm)->pair_is_inter)
    spot->peer = 0;
}

int suite_mpi_make_type(suite_type_t* type);
void suite_mpi_free_type(suite_type_t* type);
FILE* suite_mpi_open_file(const char* name);

const suite_library_t suite_library = {
    .name = "mpi",
    .init = init,
    .leave = leave,
    .abort = stop,
    .world = world,
    .barrier = barrier,
    .share = share,
    .gather = gather,
    .explain = explain,
    .make_type = suite_mpi_make_type,
    .free_type = suite_mpi_free_type,
    .settle = settle,
    .tell = tell,
    .await = await,
    .prepare = prepare,
    .open_file = suite_mpi_open_file,
};
