/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_MPI_BLOCKS_H
#define SUITE_MPI_BLOCKS_H

/**
 * @file
 * Shared code of the blocks for MPI.
 */

#include <mpi.h>

#include "../suite.h"

#define TRY(call)                             \
  do {                                        \
    int error_ = (call);                      \
    if (error_ != MPI_SUCCESS) return error_; \
  } while (0)

/** State of a communicator. Point-to-point transfers use `pair`, which may be an
 * intercommunicator; everything else uses `all`. */
typedef struct mpi_comm {
  MPI_Comm all;
  MPI_Comm pair;
  int pair_is_inter; /* ranks of `pair` are those of the other side, which has one: 0 */
} mpi_comm_t;

/** The kind of epochs of a window; MPI allows different calls in each. */
typedef enum mpi_style {
  STYLE_NONE,
  STYLE_FENCE,
  STYLE_PAIRS,
  STYLE_LOCKS,
  STYLE_OWN, /* likewise, and each rank has a shared lock of its own window all the time */
  STYLE_ALL
} mpi_style_t;

/** State of a window. */
typedef struct mpi_window {
  MPI_Win win; /* MPI_WIN_NULL: plain memory, for two-sided transfers */
  int separate;
  MPI_Request requests[256];
  int request_count;
  mpi_style_t style;
  MPI_Group group;
  struct {
    MPI_Group group;
    int rank;    /* its only member */
  } partners[2]; /* origin and target of pairs: kept, as a program would */
} mpi_window_t;

static inline mpi_comm_t* mpi_comm_of(const suite_comm_t* comm) { return comm->state; }
static inline mpi_window_t* mpi_window_of(const suite_window_t* window) { return window->state; }
static inline MPI_Datatype mpi_type_of(const suite_type_t* type) {
  return *(MPI_Datatype*)type->native;
}

/** The group of one rank, as origin (0) or target (1) of pairs. */
int mpi_new_partner(mpi_window_t* window, int which, int rank);
static inline int mpi_partner(mpi_window_t* window, int which, int rank, MPI_Group* group) {
  if (window->partners[which].group == MPI_GROUP_NULL || window->partners[which].rank != rank)
    TRY(mpi_new_partner(window, which, rank));
  *group = window->partners[which].group;
  return MPI_SUCCESS;
}

/** Makes a suite communicator of an MPI one, which it takes over. */
int mpi_comm_wrap(suite_job_t* job, MPI_Comm all, suite_comm_t* comm);
int mpi_comm_unwrap(suite_comm_t* comm);

/** Whether this process was spawned. In dynamic.c; null in a program without it. */
int mpi_is_spawned(int* spawned) __attribute__((weak));

/** The host of children for MPI_Comm_spawn: MPI_INFO_NULL, or an object to free. */
int mpi_spawn_info(const suite_job_t* job, MPI_Info* info);

/** Connects the processes of `group` in two programs that were started separately (--port-file).
 * `*begin_ns` is when both were ready. */
int mpi_meet(const suite_job_t* job, MPI_Comm group, int64_t* begin_ns, MPI_Comm* inter);

/** Registers a communicator that needs `processes` processes started together; 0: any number. */
#define MPI_COMMUNICATOR(identifier, name, summary, processes, open, close) \
  static suite_communicator_block_t identifier = {                          \
      {SUITE_COMMUNICATOR, name, summary, NULL}, processes, open, close};   \
  SUITE_REGISTER(identifier)

/** Codes for errors that are not MPI's. */
enum {
  SUITE_MPI_OWN_ERRORS = -1000,
  SUITE_MPI_NO_MEMORY = -1001,
  SUITE_MPI_NEEDS_TWO = -1002,
  SUITE_MPI_STATIC_FULL = -1003,
  SUITE_MPI_NOT_ONE_HOST = -1004,
  SUITE_MPI_NEEDS_ONE = -1005,
  SUITE_MPI_NO_PROGRAM = -1006,
  SUITE_MPI_NO_MEETING = -1007,
  SUITE_MPI_NO_PORT = -1008
};

#endif
