/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * spawn-cost (paper 3, Table 1): one process spawns n= others. Parts: spawn, MPI_Comm_spawn alone;
 * alive, until all children have answered; disconnect. "Bytes" are the number of children.
 *
 * spawn-cost:connect: two programs of n processes each meet by MPI_Comm_accept and MPI_Comm_connect
 * (--port-file). The one that accepts measures, from its call on: the port is open, and the other
 * one knows its name.
 */

#include <stdlib.h>
#include <string.h>

#include "../session.h"
#include "mpi_blocks.h"

/* Slow spawns are repeated less often: no more after kEnoughNs. */
enum { kSpawns = 6, kLeastSpawns = 3, kMostChildren = 64 };
static const int64_t kEnoughNs = 3000000000;

static const char* child(void) {
  MPI_Comm parent;
  char byte = 0;
  int error = MPI_Comm_get_parent(&parent);
  if (error == MPI_SUCCESS) error = MPI_Bcast(&byte, 1, MPI_BYTE, 0, parent);
  if (error == MPI_SUCCESS) error = MPI_Barrier(parent);
  if (error == MPI_SUCCESS) error = MPI_Comm_disconnect(&parent);
  return error == MPI_SUCCESS ? NULL : suite_library.explain(error);
}

static int spawn_once(suite_job_t* job, const suite_cell_t* cell, int children, double* times) {
  char* arguments[] = {"--cells", (char*)cell->name, "--sizes", "1", NULL};
  MPI_Comm inter;
  MPI_Info info;
  char byte = 1;
  TRY(mpi_spawn_info(job, &info));
  int64_t begin = suite_now_ns();
  TRY(MPI_Comm_spawn(job->argv[0], arguments, children, info, 0, MPI_COMM_SELF, &inter,
                     MPI_ERRCODES_IGNORE));
  int64_t spawned = suite_now_ns();
  if (info != MPI_INFO_NULL) TRY(MPI_Info_free(&info));
  TRY(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  TRY(MPI_Bcast(&byte, 1, MPI_BYTE, MPI_ROOT, inter));
  TRY(MPI_Barrier(inter));
  int64_t alive = suite_now_ns();
  TRY(MPI_Comm_disconnect(&inter));
  times[0] = (double)(spawned - begin);
  times[1] = (double)(alive - begin);
  times[2] = (double)(suite_now_ns() - alive);
  return MPI_SUCCESS;
}

/* One of two programs that meet. */
static int connect_once(const suite_job_t* job, double* times) {
  MPI_Comm inter;
  int64_t begin;
  char byte = 1;
  TRY(mpi_meet(job, MPI_COMM_WORLD, &begin, &inter));
  int64_t connected = suite_now_ns();
  TRY(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  int root = job->joins ? 0 : job->rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  TRY(MPI_Bcast(&byte, 1, MPI_BYTE, root, inter));
  TRY(MPI_Barrier(inter));
  int64_t alive = suite_now_ns();
  TRY(MPI_Comm_disconnect(&inter));
  times[0] = (double)(connected - begin);
  times[1] = (double)(alive - begin);
  times[2] = (double)(suite_now_ns() - alive);
  return MPI_SUCCESS;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  int connects = strcmp(cell->transfer, "connect") == 0;
  const char* const kParts[] = {connects ? "connect" : "spawn", "alive", "disconnect"};
  double times[3], samples[3][kSpawns];
  if (session->job->child && !connects) return child();
  uint64_t children = suite_option_number(cell, "n", 1);
  if (!connects && session->job->size != 1) return "one process spawns: start it with -n 1";
  if (children == 0 || children > kMostChildren) return "n is 1 to 64";
  if (connects && (uint64_t)session->job->size != children)
    return "start as many processes as n says";
  int64_t begin = suite_now_ns();
  int spawned = 0;
  for (; spawned < kSpawns; spawned++) {
    /* Two programs meet equally often. */
    if (!connects && spawned >= kLeastSpawns && suite_now_ns() - begin > kEnoughNs) break;
    suite_show_life(session);
    int error = connects ? connect_once(session->job, times)
                         : spawn_once(session->job, cell, (int)children, times);
    if (error != MPI_SUCCESS) {
      if (spawned == 0) return suite_library.explain(error);
      suite_give_up(session, cell, error);
    }
    for (int part = 0; part < 3; part++) samples[part][spawned] = times[part];
  }
  for (int part = 0; part < 3; part++) {
    /* The first spawn loads and connects things that later ones reuse. */
    suite_times_t shown = {samples[part] + 1, (uint64_t)spawned - 1, 1, (uint64_t)spawned, NULL, 0};
    suite_record_samples(session, cell, kParts[part], (size_t)children, &shown);
  }
  return NULL;
}

static suite_experiment_block_t spawn_cost = {
    {SUITE_EXPERIMENT, "spawn-cost",
     "MPI_Comm_spawn of n processes, or two programs that meet (paper 3, Table 1)", NULL},
    measure};
SUITE_REGISTER(spawn_cost)
