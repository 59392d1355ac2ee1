/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_MOBIUS_BLOCKS_H
#define SUITE_MOBIUS_BLOCKS_H

/**
 * @file
 * Shared code of the blocks for Möbius.
 */

#include <mobius/mobius.h>

#include "../suite.h"

#define TRY(call)                        \
  do {                                   \
    int error_ = (call);                 \
    if (error_ != MOB_OK) return error_; \
  } while (0)

/** Errors that are not the library's: a job of one process is needed; --port-file is; the socket by
 * which two jobs meet cannot be had. */
enum {
  SUITE_MOBIUS_NEEDS_ONE = -1000,
  SUITE_MOBIUS_NO_MEETING = -1001,
  SUITE_MOBIUS_NO_SOCKET = -1002
};

/** State of a communicator: a team, its members' numbers, and what it was merged of, if it was. */
typedef struct mobius_comm {
  mob_team_t team;
  mob_bridge_t bridge;
  mob_rank_t world[];
} mobius_comm_t;

/** State of a window. `bases` are addresses in their owners' address spaces. */
typedef struct mobius_window {
  mob_mem_t mem;
  mob_exposed_t exposed;
  mob_epoch_t epoch;
  mob_access_t access;
  mob_mutexes_t mutexes;
  mob_handle_t handles[256];
  size_t handle_count;
} mobius_window_t;

/** Meets the other one of two jobs (--port-file), by a port or by a socket. */
int mobius_meet(const suite_job_t* job, int by_socket, mob_bridge_t* bridge);

static inline mobius_comm_t* mobius_comm_of(const suite_comm_t* comm) { return comm->state; }
static inline mobius_window_t* mobius_window_of(const suite_window_t* window) {
  return window->state;
}
static inline mob_rank_t mobius_rank_of(const suite_window_t* window, int rank) {
  return mobius_comm_of(window->comm)->world[rank];
}
static inline void* mobius_place(const suite_window_t* window, int rank, size_t offset) {
  return (void*)(uintptr_t)(window->bases[rank] + offset);
}

#endif
