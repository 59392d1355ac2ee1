/* SPDX-License-Identifier: BSD-3-Clause */

/* Communicators: the static one and its parts. */

#include "mpi_blocks.h"

static int world_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  MPI_Comm made;
  (void)cell;
  TRY(MPI_Comm_dup(MPI_COMM_WORLD, &made));
  return mpi_comm_wrap(job, made, comm);
}

static int split_by(suite_job_t* job, int key, suite_comm_t* comm) {
  MPI_Comm made;
  TRY(MPI_Comm_split(MPI_COMM_WORLD, 0, key, &made));
  return mpi_comm_wrap(job, made, comm);
}

static int split_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return split_by(job, job->rank, comm);
}

static int reordered_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return split_by(job, -job->rank, comm);
}

MPI_COMMUNICATOR(world_block, "world", "MPI_COMM_WORLD", 0, world_open, mpi_comm_unwrap)
MPI_COMMUNICATOR(split, "split", "MPI_Comm_split, ranks as they were", 0, split_open,
                 mpi_comm_unwrap)
MPI_COMMUNICATOR(reordered, "reordered", "MPI_Comm_split, ranks the other way round", 0,
                 reordered_open, mpi_comm_unwrap)
