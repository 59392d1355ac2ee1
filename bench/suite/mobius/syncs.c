/* SPDX-License-Identifier: BSD-3-Clause */

/* Synchronisations of Möbius. */

#include "mobius_blocks.h"

static mob_team_t team_of(const suite_window_t* window) {
  return mobius_comm_of(window->comm)->team;
}

static int flush_leave(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? mob_flush(mobius_rank_of(window, to)) : MOB_OK;
}

static int epoch_open(suite_window_t* window) {
  return mob_epoch_create(team_of(window), &mobius_window_of(window)->epoch);
}

static int epoch_close(suite_window_t* window) {
  return mob_epoch_free(mobius_window_of(window)->epoch);
}

static int fence_enter(suite_window_t* window, int to, int from) {
  (void)to;
  (void)from;
  return mob_epoch_fence(mobius_window_of(window)->epoch);
}

static int pscw_enter(suite_window_t* window, int to, int from) {
  mob_epoch_t epoch = mobius_window_of(window)->epoch;
  if (from != SUITE_NOBODY) {
    mob_rank_t origin = mobius_rank_of(window, from);
    TRY(mob_epoch_post(epoch, &origin, 1));
  }
  if (to == SUITE_NOBODY) return MOB_OK;
  mob_rank_t target = mobius_rank_of(window, to);
  return mob_epoch_start(epoch, &target, 1);
}

static int pscw_leave(suite_window_t* window, int to, int from) {
  mob_epoch_t epoch = mobius_window_of(window)->epoch;
  if (to != SUITE_NOBODY) TRY(mob_epoch_complete(epoch));
  return from != SUITE_NOBODY ? mob_epoch_wait(epoch) : MOB_OK;
}

static int access_open(suite_window_t* window) {
  return mob_access_create(team_of(window), &mobius_window_of(window)->access);
}

static int access_close(suite_window_t* window) {
  return mob_access_free(mobius_window_of(window)->access);
}

static int lock(suite_window_t* window, int to, mob_access_mode_t mode) {
  if (to == SUITE_NOBODY) return MOB_OK;
  /* Like MPI_Win_lock(): may return before it has the lock. */
  return mob_access_lock_nbi(mobius_window_of(window)->access, mobius_rank_of(window, to), mode);
}

static int lock_enter(suite_window_t* window, int to, int from) {
  (void)from;
  return lock(window, to, MOB_SHARED);
}

static int lockx_enter(suite_window_t* window, int to, int from) {
  (void)from;
  return lock(window, to, MOB_EXCLUSIVE);
}

static int lock_leave(suite_window_t* window, int to, int from) {
  (void)from;
  if (to == SUITE_NOBODY) return MOB_OK;
  return mob_access_unlock(mobius_window_of(window)->access, mobius_rank_of(window, to));
}

static int lock_all_enter(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? mob_access_lock_all(mobius_window_of(window)->access, NULL) : MOB_OK;
}

static int lock_all_leave(suite_window_t* window, int to, int from) {
  (void)from;
  return to != SUITE_NOBODY ? mob_access_unlock_all(mobius_window_of(window)->access) : MOB_OK;
}

static int mutex_open(suite_window_t* window) {
  return mob_mutexes_create(team_of(window), 1, &mobius_window_of(window)->mutexes);
}

static int mutex_close(suite_window_t* window) {
  return mob_mutexes_free(mobius_window_of(window)->mutexes);
}

static int mutex_enter(suite_window_t* window, int to, int from) {
  (void)from;
  if (to == SUITE_NOBODY) return MOB_OK;
  return mob_mutex_lock(mobius_window_of(window)->mutexes, 0, mobius_rank_of(window, to), NULL);
}

static int mutex_leave(suite_window_t* window, int to, int from) {
  (void)from;
  if (to == SUITE_NOBODY) return MOB_OK;
  return mob_mutex_unlock(mobius_window_of(window)->mutexes, 0, mobius_rank_of(window, to));
}

static int complete(suite_window_t* window, int to) {
  return mob_flush(mobius_rank_of(window, to));
}

#define SYNC(identifier, name, summary, passive, open, enter, leave, close, complete)   \
  static suite_sync_block_t identifier = {                                              \
      {SUITE_SYNC, name, summary, NULL}, passive, open, enter, leave, close, complete}; \
  SUITE_REGISTER(identifier)
SYNC(flush, "flush", "mob_flush", 1, NULL, NULL, flush_leave, NULL, complete)
SYNC(fence, "fence", "mob_epoch_fence before and after", 0, epoch_open, fence_enter, fence_enter,
     epoch_close, NULL)
SYNC(one_fence, "one-fence", "mob_epoch_fence after, which opens the next epoch, too", 0,
     epoch_open, NULL, fence_enter, epoch_close, NULL)
SYNC(pscw, "pscw", "mob_epoch_start, complete; post, wait", 0, epoch_open, pscw_enter, pscw_leave,
     epoch_close, NULL)
SYNC(lock_block, "lock", "mob_access_lock_nbi (shared), unlock", 1, access_open, lock_enter,
     lock_leave, access_close, complete)
SYNC(lockx, "lockx", "mob_access_lock_nbi (exclusive), unlock", 1, access_open, lockx_enter,
     lock_leave, access_close, complete)
SYNC(lock_all, "lock_all", "mob_access_lock_all, unlock_all", 1, access_open, lock_all_enter,
     lock_all_leave, access_close, complete)
SYNC(mutex, "mutex", "mob_mutex_lock, unlock", 1, mutex_open, mutex_enter, mutex_leave, mutex_close,
     complete)
