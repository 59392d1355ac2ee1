/* SPDX-License-Identifier: BSD-3-Clause */

/* Synchronisations of OpenSHMEM. */

#include "shmem_blocks.h"

enum { kMostRanks = 1024 };
/* One lock per rank, as in a window of MPI. */
static long locks[kMostRanks];

static int flush_leave(suite_window_t* window, int to, int from) {
  (void)window;
  (void)from;
  if (to != SUITE_NOBODY) shmem_quiet();
  return SUITE_SHMEM_OK;
}

static int fence(suite_window_t* window, int to, int from) {
  (void)window;
  (void)to;
  (void)from;
  shmem_barrier_all();
  return SUITE_SHMEM_OK;
}

static int lock_open(suite_window_t* window) {
  return window->comm->size <= kMostRanks ? SUITE_SHMEM_OK : SUITE_SHMEM_TOO_MANY;
}

static int lock_enter(suite_window_t* window, int to, int from) {
  (void)window;
  (void)from;
  if (to != SUITE_NOBODY) shmem_set_lock(&locks[to]);
  return SUITE_SHMEM_OK;
}

static int lock_leave(suite_window_t* window, int to, int from) {
  (void)window;
  (void)from;
  if (to == SUITE_NOBODY) return SUITE_SHMEM_OK;
  shmem_quiet();
  shmem_clear_lock(&locks[to]);
  return SUITE_SHMEM_OK;
}

static int complete(suite_window_t* window, int to) {
  (void)window;
  (void)to;
  shmem_quiet();
  return SUITE_SHMEM_OK;
}

static suite_sync_block_t flush_block = {
    {SUITE_SYNC, "flush", "shmem_quiet", NULL}, 1, NULL, NULL, flush_leave, NULL, complete};
static suite_sync_block_t fence_block = {
    {SUITE_SYNC, "fence", "shmem_barrier_all before and after", NULL},
    0,
    NULL,
    fence,
    fence,
    NULL,
    NULL};
static suite_sync_block_t one_fence_block = {
    {SUITE_SYNC, "one-fence", "shmem_barrier_all after", NULL}, 0, NULL, NULL, fence, NULL, NULL};
static suite_sync_block_t lockx_block = {
    {SUITE_SYNC, "lockx", "shmem_set_lock, quiet, clear_lock", NULL},
    1,
    lock_open,
    lock_enter,
    lock_leave,
    NULL,
    complete};
SUITE_REGISTER(flush_block)
SUITE_REGISTER(fence_block)
SUITE_REGISTER(one_fence_block)
SUITE_REGISTER(lockx_block)
