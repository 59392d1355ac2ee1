/* SPDX-License-Identifier: BSD-3-Clause */

/* Communicators of paper 3, §3, that are made later. Like spawn_cost.c, not compiled for an MPI
 * that cannot do this (tools/instrument/mobius_instrument/libraries/mpi.py). */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_blocks.h"

int mpi_is_spawned(int* spawned) {
  MPI_Comm parent;
  TRY(MPI_Comm_get_parent(&parent));
  *spawned = parent != MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int mpi_spawn_info(const suite_job_t* job, MPI_Info* info) {
  *info = MPI_INFO_NULL;
  if (job->spawn_on == NULL) return MPI_SUCCESS;
  TRY(MPI_Info_create(info));
  return MPI_Info_set(*info, "host", (char*)job->spawn_on);
}

/* Takes over an intercommunicator of two sides; the `high` side is second. */
static int join(suite_job_t* job, MPI_Comm inter, int high, int keep_inter, suite_comm_t* comm) {
  MPI_Comm merged;
  TRY(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  TRY(MPI_Intercomm_merge(inter, high, &merged));
  TRY(mpi_comm_wrap(job, merged, comm));
  mpi_comm_t* state = mpi_comm_of(comm);
  if (comm->size != 2) return SUITE_MPI_NEEDS_TWO;
  state->pair = inter;
  state->pair_is_inter = keep_inter;
  if (!keep_inter) state->pair = state->all;
  return MPI_SUCCESS;
}

/* The child runs the same program with the same arguments, but only this cell. */
static char** arguments_for(const suite_job_t* job, const suite_cell_t* cell) {
  char** arguments = calloc((size_t)job->argc + 1, sizeof *arguments);
  int count = 0;
  if (arguments == NULL) return NULL;
  for (int i = 1; i < job->argc; i++) {
    if (strcmp(job->argv[i], "--out") == 0) {
      i++;
      continue;
    }
    arguments[count++] = job->argv[i];
    if (strcmp(job->argv[i], "--cells") == 0 && i + 1 < job->argc) {
      arguments[count++] = (char*)cell->name;
      i++;
    }
  }
  return arguments;
}

static int spawn(suite_job_t* job, const suite_cell_t* cell, int keep_inter, suite_comm_t* comm) {
  MPI_Comm inter;
  if (job->child) {
    TRY(MPI_Comm_get_parent(&inter));
    return join(job, inter, 1, keep_inter, comm);
  }
  if (job->size != 1) return SUITE_MPI_NEEDS_ONE;
  char** arguments = arguments_for(job, cell);
  if (arguments == NULL) return SUITE_MPI_NO_MEMORY;
  MPI_Info info;
  int error = mpi_spawn_info(job, &info);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_spawn(job->argv[0], arguments, 1, info, 0, MPI_COMM_SELF, &inter,
                           MPI_ERRCODES_IGNORE);
  free(arguments);
  TRY(error);
  if (info != MPI_INFO_NULL) TRY(MPI_Info_free(&info));
  return join(job, inter, 0, keep_inter, comm);
}

static int spawn_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  return spawn(job, cell, 0, comm);
}

static int spawn_inter_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  return spawn(job, cell, 1, comm);
}

/* Two processes that were started together meet like two applications, by the name of a port.
 */
static int connect_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  (void)cell;
  if (job->size != 2) return SUITE_MPI_NEEDS_TWO;
  int error = job->rank == 0 ? MPI_Open_port(MPI_INFO_NULL, port) : MPI_SUCCESS;
  TRY(MPI_Bcast(&error, 1, MPI_INT, 0, MPI_COMM_WORLD));
  TRY(error);
  TRY(MPI_Bcast(port, sizeof port, MPI_BYTE, 0, MPI_COMM_WORLD));
  if (job->rank == 0) {
    TRY(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    TRY(MPI_Close_port(port));
  } else {
    TRY(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
  }
  return join(job, inter, job->rank == 1, 1, comm);
}

/* The file with the port's name, numbered by meeting; it is complete as soon as it exists. */
static int leave_port(const char* file, const char* port) {
  char draft[PATH_MAX];
  snprintf(draft, sizeof draft, "%s.draft", file);
  FILE* out = fopen(draft, "w");
  if (out == NULL) return SUITE_MPI_NO_PORT;
  fputs(port, out);
  return fclose(out) == 0 && rename(draft, file) == 0 ? MPI_SUCCESS : SUITE_MPI_NO_PORT;
}

static int find_port(const char* file, char* port) {
  enum { kLimitMs = 60000, kPauseMs = 5 };
  FILE* in = NULL;
  for (int waited = 0; (in = fopen(file, "r")) == NULL; waited += kPauseMs) {
    if (waited > kLimitMs) return SUITE_MPI_NO_PORT;
    usleep(1000 * kPauseMs);
  }
  size_t length = fread(port, 1, MPI_MAX_PORT_NAME - 1, in);
  fclose(in);
  port[length] = '\0';
  return length > 0 ? MPI_SUCCESS : SUITE_MPI_NO_PORT;
}

/* Two programs that were started separately. */
static int applications_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  static int meetings;
  char port[MPI_MAX_PORT_NAME] = "", file[PATH_MAX];
  MPI_Comm inter;
  (void)cell;
  if (job->port_file == NULL) return SUITE_MPI_NO_MEETING;
  if (job->size != 1) return SUITE_MPI_NEEDS_ONE;
  snprintf(file, sizeof file, "%.4000s.%d", job->port_file, meetings++);
  if (job->joins) {
    TRY(find_port(file, port));
    TRY(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
  } else {
    int error = MPI_Open_port(MPI_INFO_NULL, port);
    int left = leave_port(file, error == MPI_SUCCESS ? port : "");
    TRY(error);
    TRY(left);
    TRY(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    TRY(MPI_Close_port(port));
  }
  return join(job, inter, job->joins, 1, comm);
}

static int dynamic_close(suite_comm_t* comm) {
  mpi_comm_t* state = mpi_comm_of(comm);
  MPI_Comm inter = state->pair;
  int was_inter = state->pair_is_inter;
  state->pair = state->all;
  TRY(mpi_comm_unwrap(comm));
  return was_inter ? MPI_Comm_disconnect(&inter) : MPI_SUCCESS;
}

MPI_COMMUNICATOR(spawn_block, "spawn", "MPI_Comm_spawn and MPI_Intercomm_merge", 1, spawn_open,
                 dynamic_close)
MPI_COMMUNICATOR(spawn_inter, "spawn-inter", "MPI_Comm_spawn, messages on the intercommunicator", 1,
                 spawn_inter_open, dynamic_close)
MPI_COMMUNICATOR(connect_block, "connect", "MPI_Comm_accept and MPI_Comm_connect", 2, connect_open,
                 dynamic_close)
MPI_COMMUNICATOR(applications, "applications",
                 "the same between two programs that meet (--port-file)", 1, applications_open,
                 dynamic_close)
