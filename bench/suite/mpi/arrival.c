/* SPDX-License-Identifier: BSD-3-Clause */

/* How processes come later: by MPI_Comm_spawn, or by MPI_Comm_accept and MPI_Comm_connect. Of two
 * programs the one that accepts measures, from its call on: the port is open, and the other one
 * knows its name. They are alive after a broadcast and a barrier. Not
 * compiled for an MPI that cannot do this (tools/instrument/mobius_instrument/libraries/mpi.py). */

#include "../session.h"
#include "mpi_blocks.h"

/* What both sides do once they are there. */
static int meet(MPI_Comm inter, int root) {
  char byte = 1;
  TRY(MPI_Bcast(&byte, 1, MPI_BYTE, root, inter));
  return MPI_Barrier(inter);
}

static int answer(void) {
  MPI_Comm parent;
  TRY(MPI_Comm_get_parent(&parent));
  TRY(meet(parent, 0));
  return MPI_Comm_disconnect(&parent);
}

static int spawn(suite_job_t* job, const suite_cell_t* cell, int children,
                 suite_arrival_times_t* times) {
  char* arguments[] = {"--cells", (char*)cell->name, "--sizes", "1", NULL};
  MPI_Comm inter;
  MPI_Info info;
  TRY(mpi_spawn_info(job, &info));
  times->begin = suite_now_ns();
  TRY(MPI_Comm_spawn(job->argv[0], arguments, children, info, 0, MPI_COMM_SELF, &inter,
                     MPI_ERRCODES_IGNORE));
  times->there = suite_now_ns();
  if (info != MPI_INFO_NULL) TRY(MPI_Info_free(&info));
  TRY(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  TRY(meet(inter, MPI_ROOT));
  times->alive = suite_now_ns();
  return MPI_Comm_disconnect(&inter);
}

static int by_port(suite_job_t* job, const suite_cell_t* cell, int children,
                   suite_arrival_times_t* times) {
  MPI_Comm inter;
  (void)cell;
  (void)children;
  TRY(mpi_meet(job, MPI_COMM_WORLD, &times->begin, &inter));
  times->there = suite_now_ns();
  TRY(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  TRY(meet(inter, job->joins ? 0 : job->rank == 0 ? MPI_ROOT : MPI_PROC_NULL));
  times->alive = suite_now_ns();
  return MPI_Comm_disconnect(&inter);
}

static suite_arrival_block_t spawn_block = {
    {SUITE_ARRIVAL, "spawn", "MPI_Comm_spawn", NULL}, 0, spawn, answer};
static suite_arrival_block_t connect_block = {
    {SUITE_ARRIVAL, "connect", "MPI_Comm_accept, MPI_Comm_connect", NULL}, 0, by_port, NULL};
SUITE_REGISTER(spawn_block)
SUITE_REGISTER(connect_block)
