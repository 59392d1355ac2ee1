/* SPDX-License-Identifier: BSD-3-Clause */

/* Synchronisations of MPI, as in paper 3: each leg opens and closes an epoch. */

#include "mpi_blocks.h"

static MPI_Win win_of(const suite_window_t* window) { return mpi_window_of(window)->win; }

static int none_open(suite_window_t* window) {
  (void)window;
  return MPI_SUCCESS;
}

static int fence_open(suite_window_t* window) {
  mpi_window_of(window)->style = STYLE_FENCE;
  return MPI_SUCCESS;
}

static int one_fence_open(suite_window_t* window) {
  mpi_window_of(window)->style = STYLE_FENCE;
  return MPI_Win_fence(MPI_MODE_NOPRECEDE, win_of(window));
}

static int fence_close(suite_window_t* window) {
  return MPI_Win_fence(MPI_MODE_NOSUCCEED, win_of(window));
}

static int fence_enter(suite_window_t* window, int to, int from) {
  (void)to;
  (void)from;
  return MPI_Win_fence(0, win_of(window));
}

static int pscw_open(suite_window_t* window) {
  mpi_window_of(window)->style = STYLE_PAIRS;
  return MPI_Comm_group(mpi_comm_of(window->comm)->all, &mpi_window_of(window)->group);
}

int mpi_new_partner(mpi_window_t* window, int which, int rank) {
  MPI_Group* group = &window->partners[which].group;
  if (*group != MPI_GROUP_NULL) TRY(MPI_Group_free(group));
  window->partners[which].rank = rank;
  return MPI_Group_incl(window->group, 1, &rank, group);
}

static int pscw_close(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  for (int i = 0; i < 2; i++)
    if (state->partners[i].group != MPI_GROUP_NULL) TRY(MPI_Group_free(&state->partners[i].group));
  return MPI_Group_free(&state->group);
}

static int pscw_enter(suite_window_t* window, int to, int from) {
  mpi_window_t* state = mpi_window_of(window);
  MPI_Group group;
  if (from != SUITE_NOBODY) {
    TRY(mpi_partner(state, 0, from, &group));
    TRY(MPI_Win_post(group, 0, state->win));
  }
  if (to != SUITE_NOBODY) {
    TRY(mpi_partner(state, 1, to, &group));
    TRY(MPI_Win_start(group, 0, state->win));
  }
  return MPI_SUCCESS;
}

static int pscw_leave(suite_window_t* window, int to, int from) {
  if (to != SUITE_NOBODY) TRY(MPI_Win_complete(win_of(window)));
  return from != SUITE_NOBODY ? MPI_Win_wait(win_of(window)) : MPI_SUCCESS;
}

/* While a rank has a lock of its own window, it may poll the memory and call MPI_Win_sync. */
static int lock_open(suite_window_t* window) {
  mpi_window_of(window)->style = STYLE_OWN;
  return MPI_Win_lock(MPI_LOCK_SHARED, window->comm->rank, 0, win_of(window));
}

static int lock_close(suite_window_t* window) {
  return MPI_Win_unlock(window->comm->rank, win_of(window));
}

static int locks_open(suite_window_t* window) {
  mpi_window_of(window)->style = STYLE_LOCKS;
  return MPI_SUCCESS;
}

static int lock_enter(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win_of(window)) : MPI_SUCCESS;
}

static int lockx_enter(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win_of(window)) : MPI_SUCCESS;
}

static int lock_leave(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? MPI_Win_unlock(to, win_of(window)) : MPI_SUCCESS;
}

static int flush_open(suite_window_t* window) {
  mpi_window_of(window)->style = STYLE_ALL;
  return MPI_Win_lock_all(0, win_of(window));
}

static int flush_leave(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? MPI_Win_flush(to, win_of(window)) : MPI_SUCCESS;
}

static int flush_close(suite_window_t* window) { return MPI_Win_unlock_all(win_of(window)); }

static int lock_all_enter(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? MPI_Win_lock_all(0, win_of(window)) : MPI_SUCCESS;
}

static int lock_all_leave(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? MPI_Win_unlock_all(win_of(window)) : MPI_SUCCESS;
}

static int complete(suite_window_t* window, int to) { return MPI_Win_flush(to, win_of(window)); }

#define SYNC(identifier, name, summary, passive, open, enter, leave, close, complete)   \
  static suite_sync_block_t identifier = {                                              \
      {SUITE_SYNC, name, summary, NULL}, passive, open, enter, leave, close, complete}; \
  SUITE_REGISTER(identifier)
SYNC(none, "none", "nothing: two-sided transfers", 0, none_open, NULL, NULL, NULL, NULL)
SYNC(fence, "fence", "fence, transfer, fence", 0, fence_open, fence_enter, fence_enter, fence_close,
     NULL)
SYNC(one_fence, "one-fence", "transfer, fence, which opens the next epoch, too", 0, one_fence_open,
     NULL, fence_enter, fence_close, NULL)
SYNC(pscw, "pscw", "start, complete; post, wait", 0, pscw_open, pscw_enter, pscw_leave, pscw_close,
     NULL)
SYNC(lock, "lock", "lock (shared), unlock", 1, lock_open, lock_enter, lock_leave, lock_close,
     complete)
SYNC(lockx, "lockx", "lock (exclusive), unlock", 1, locks_open, lockx_enter, lock_leave, NULL,
     complete)
SYNC(lock_all, "lock_all", "lock_all, unlock_all", 1, locks_open, lock_all_enter, lock_all_leave,
     NULL, complete)
SYNC(flush, "flush", "lock_all once, then flush", 1, flush_open, NULL, flush_leave, flush_close,
     complete)
