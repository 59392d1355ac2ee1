/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Loops of MPI. The rules of MPI and the reasons for this design (sections of MPI 4.1):
 *
 * - flush: one lock_all epoch for the whole cell. Polling the own window with plain loads is
 *   allowed while the epoch is open, and in the unified memory model (12.4, the window says which
 *   it has) a put becomes visible to them without a call; MPI_Win_sync then orders the flag before
 *   the data. In the separate model MPI_Win_sync stands in front of every load.
 * - lock: one lock/unlock pair per operation. The lock is shared and the poller holds a shared lock
 *   of its own window for the whole cell, which makes its loads and MPI_Win_sync legal. With
 *   exclusive locks the poller would have to give up its lock between polls, and each poll would
 *   stand in the way of the operation it waits for.
 * - one-fence: each fence ends one epoch and begins the next, so a leg has one.
 * - pscw: the origin is in start … complete, the target in post … wait.
 * - Not every library completes an operation at a target that makes no calls (12.7.3 lets it wait
 *   for one). The poller therefore calls MPI_Iprobe every kPollsPerCall polls. Measured on MPICH 5
 *   and Open MPI 5: with 1 to 64 polls, memory that needs the calls and memory that does not are as
 *   fast as each can be; with 256 the former is some percent slower, with 1024 up to twice.
 */

#include "../loops.h"

#include "mpi_blocks.h"

enum { kDataTag = 7, kServeTag = 77 };

static SUITE_INLINE MPI_Win win_of(const suite_spot_t* spot) {
  return ((const mpi_window_t*)spot->state)->win;
}

static SUITE_INLINE int start_put(const suite_spot_t* spot) {
  return MPI_Put(spot->data, (int)spot->bytes, MPI_BYTE, spot->peer, (MPI_Aint)spot->far_data,
                 (int)spot->bytes, MPI_BYTE, win_of(spot));
}

static SUITE_INLINE int start_get(const suite_spot_t* spot) {
  return MPI_Get(spot->data, (int)spot->bytes, MPI_BYTE, spot->peer, (MPI_Aint)spot->far_data,
                 (int)spot->bytes, MPI_BYTE, win_of(spot));
}

static SUITE_INLINE int start_flag(suite_spot_t* spot) {
  spot->sent++;
  return MPI_Put(&spot->sent, 1, MPI_UINT64_T, spot->peer, (MPI_Aint)spot->far_flag, 1,
                 MPI_UINT64_T, win_of(spot));
}

static SUITE_INLINE int await_flag(suite_spot_t* spot) {
  enum { kPollsPerCall = 64 };
  const volatile uint64_t* flag = spot->flag;
  const uint64_t expected = ++spot->seen;
  int polls_left = kPollsPerCall, found;
  /* Larger than expected if the other rank has already sent its next signal. */
  while ((int64_t)(*flag - expected) < 0) {
    if (((const mpi_window_t*)spot->state)->separate) TRY(MPI_Win_sync(win_of(spot)));
    if (--polls_left > 0) continue;
    TRY(MPI_Iprobe(MPI_ANY_SOURCE, kServeTag, mpi_comm_of(spot->window->comm)->all, &found,
                   MPI_STATUS_IGNORE));
    polls_left = kPollsPerCall;
  }
  return MPI_Win_sync(win_of(spot));
}

/* The steps of one operation, `start` being MPI_Put or MPI_Get. `publish` makes the result visible
 * to the peer's next operation where it was stored into the own window. */
#define DEFINE_STEPS(operation, start, publish)                            \
  static SUITE_INLINE int flush_##operation(suite_spot_t* spot) {          \
    TRY(start(spot));                                                      \
    return MPI_Win_flush(spot->peer, win_of(spot));                        \
  }                                                                        \
  static SUITE_INLINE int flush_turn_##operation(suite_spot_t* spot) {     \
    TRY(flush_##operation(spot));                                          \
    TRY(publish);                                                          \
    TRY(start_flag(spot));                                                 \
    return MPI_Win_flush(spot->peer, win_of(spot));                        \
  }                                                                        \
  static SUITE_INLINE int lock_##operation(suite_spot_t* spot) {           \
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, spot->peer, 0, win_of(spot)));       \
    TRY(start(spot));                                                      \
    return MPI_Win_unlock(spot->peer, win_of(spot));                       \
  }                                                                        \
  static SUITE_INLINE int lock_turn_##operation(suite_spot_t* spot) {      \
    TRY(lock_##operation(spot));                                           \
    TRY(publish);                                                          \
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, spot->peer, 0, win_of(spot)));       \
    TRY(start_flag(spot));                                                 \
    return MPI_Win_unlock(spot->peer, win_of(spot));                       \
  }                                                                        \
  static SUITE_INLINE int one_fence_turn_##operation(suite_spot_t* spot) { \
    TRY(start(spot));                                                      \
    return MPI_Win_fence(0, win_of(spot));                                 \
  }                                                                        \
  static SUITE_INLINE int fence_turn_##operation(suite_spot_t* spot) {     \
    TRY(MPI_Win_fence(0, win_of(spot)));                                   \
    return one_fence_turn_##operation(spot);                               \
  }                                                                        \
  static SUITE_INLINE int pscw_turn_##operation(suite_spot_t* spot) {      \
    MPI_Group group;                                                       \
    TRY(mpi_partner(spot->state, 1, spot->peer, &group));                  \
    TRY(MPI_Win_start(group, 0, win_of(spot)));                            \
    TRY(start(spot));                                                      \
    return MPI_Win_complete(win_of(spot));                                 \
  }

static SUITE_INLINE int one_fence_await(suite_spot_t* spot) {
  return MPI_Win_fence(0, win_of(spot));
}

static SUITE_INLINE int fence_await(suite_spot_t* spot) {
  TRY(MPI_Win_fence(0, win_of(spot)));
  return MPI_Win_fence(0, win_of(spot));
}

static SUITE_INLINE int pscw_await(suite_spot_t* spot) {
  MPI_Group group;
  TRY(mpi_partner(spot->state, 0, spot->peer, &group));
  TRY(MPI_Win_post(group, 0, win_of(spot)));
  return MPI_Win_wait(win_of(spot));
}

static SUITE_INLINE int send_turn(suite_spot_t* spot) {
  return MPI_Send(spot->data, (int)spot->bytes, MPI_BYTE, spot->peer, kDataTag,
                  mpi_comm_of(spot->window->comm)->pair);
}

static SUITE_INLINE int receive_await(suite_spot_t* spot) {
  return MPI_Recv(spot->data, (int)spot->bytes, MPI_BYTE, spot->peer, kDataTag,
                  mpi_comm_of(spot->window->comm)->pair, MPI_STATUS_IGNORE);
}

DEFINE_STEPS(put, start_put, MPI_SUCCESS)
DEFINE_STEPS(get, start_get, MPI_Win_sync(win_of(spot)))

/* Active synchronisation needs calls of the target, so one side alone cannot complete. */
#define DEFINE_LOOPS(operation, call)                                                              \
  SUITE_DEFINE_THERE_AND_BACK(flush_loop_##operation, flush_turn_##operation, await_flag)          \
  SUITE_DEFINE_THERE_AND_BACK(lock_loop_##operation, lock_turn_##operation, await_flag)            \
  SUITE_DEFINE_THERE_AND_BACK(fence_loop_##operation, fence_turn_##operation, fence_await)         \
  SUITE_DEFINE_THERE_AND_BACK(one_fence_loop_##operation, one_fence_turn_##operation,              \
                              one_fence_await)                                                     \
  SUITE_DEFINE_THERE_AND_BACK(pscw_loop_##operation, pscw_turn_##operation, pscw_await)            \
  SUITE_DEFINE_ONE_SIDE(flush_side_##operation, flush_##operation)                                 \
  SUITE_DEFINE_ONE_SIDE(lock_side_##operation, lock_##operation)                                   \
  SUITE_REGISTER_LOOPS(flush_block_##operation, #operation ":flush", call ", flush", 0,            \
                       flush_loop_##operation, flush_side_##operation)                             \
  SUITE_REGISTER_LOOPS(lock_block_##operation, #operation ":lock", "lock, " call ", unlock", 0,    \
                       lock_loop_##operation, lock_side_##operation)                               \
  SUITE_REGISTER_LOOPS(fence_block_##operation, #operation ":fence", "fence, " call ", fence", 0,  \
                       fence_loop_##operation, NULL)                                               \
  SUITE_REGISTER_LOOPS(one_fence_block_##operation, #operation ":one-fence", call ", fence", 0,    \
                       one_fence_loop_##operation, NULL)                                           \
  SUITE_REGISTER_LOOPS(pscw_block_##operation, #operation ":pscw", "start, " call ", complete", 0, \
                       pscw_loop_##operation, NULL)

DEFINE_LOOPS(put, "MPI_Put")
DEFINE_LOOPS(get, "MPI_Get")
SUITE_DEFINE_THERE_AND_BACK(messages, send_turn, receive_await)
SUITE_REGISTER_LOOPS(sendrecv, "sendrecv:none", "MPI_Send, MPI_Recv", 0, messages, NULL)
