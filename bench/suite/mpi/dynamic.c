/* SPDX-License-Identifier: BSD-3-Clause */

/* Communicators of paper 3, §3, that are made later. Like arrival.c, not compiled for an MPI
 * that cannot do this (tools/instrument/mobius_instrument/libraries/mpi.py). */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../session.h"
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

/* What the first process of each program does: the one that does not join opens the port, and the
 * other one leaves a word when it has read its name. */
static int exchange_port(const suite_job_t* job, char* port) {
  static int meetings;
  char file[PATH_MAX], ready[PATH_MAX], word[MPI_MAX_PORT_NAME];
  snprintf(file, sizeof file, "%.4000s.%d", job->port_file, meetings);
  snprintf(ready, sizeof ready, "%.4000s.%d.ready", job->port_file, meetings++);
  if (job->joins) {
    TRY(find_port(file, port));
    return leave_port(ready, "ready");
  }
  int error = MPI_Open_port(MPI_INFO_NULL, port);
  int left = leave_port(file, error == MPI_SUCCESS ? port : "");
  TRY(error);
  TRY(left);
  return find_port(ready, word);
}

int mpi_meet(const suite_job_t* job, MPI_Comm group, int64_t* begin_ns, MPI_Comm* inter) {
  char port[MPI_MAX_PORT_NAME] = "";
  if (job->port_file == NULL) return SUITE_MPI_NO_MEETING;
  int error = job->rank == 0 ? exchange_port(job, port) : MPI_SUCCESS;
  int failed = error != MPI_SUCCESS; /* an error of one process says nothing in another */
  TRY(MPI_Bcast(&failed, 1, MPI_INT, 0, group));
  TRY(error);
  if (failed) return SUITE_MPI_NO_PORT;
  *begin_ns = suite_now_ns();
  if (job->joins) return MPI_Comm_connect(port, MPI_INFO_NULL, 0, group, inter);
  TRY(MPI_Comm_accept(port, MPI_INFO_NULL, 0, group, inter));
  return job->rank == 0 ? MPI_Close_port(port) : MPI_SUCCESS;
}

/* Two programs that were started separately. */
static int applications_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  MPI_Comm inter;
  int64_t begin_ns;
  (void)cell;
  if (job->size != 1) return SUITE_MPI_NEEDS_ONE;
  TRY(mpi_meet(job, MPI_COMM_SELF, &begin_ns, &inter));
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
