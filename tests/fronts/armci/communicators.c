/* SPDX-License-Identifier: BSD-3-Clause */

/* ARMCI in a part of an MPI program: communicators(PARTS, ORDER). The processes are distributed
 * over so many communicators, each an ARMCI of its own at the same time, in the order of the world
 * or reversed; with one part, the last process stays outside. Prints "communicators: right". */

#include <armci.h>
#include <armci_msg.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds)                                                           \
  do {                                                                           \
    if (!(holds)) {                                                              \
      fprintf(stderr, "line %d, world rank %d: %s\n", __LINE__, in_all, #holds); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                              \
    }                                                                            \
  } while (0)

static int in_all, all;

static void use(MPI_Comm comm, int threaded) {
  int rank, size, me, members;
  ARMCI_Group world;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (threaded)
    REQUIRE(ARMCI_Init_thread_comm(MPI_THREAD_MULTIPLE, comm) == 0);
  else
    REQUIRE(ARMCI_Init_mpi_comm(comm) == 0);
  REQUIRE(armci_msg_me() == rank && armci_msg_nproc() == size);
  ARMCI_Group_get_world(&world);
  ARMCI_Group_rank(&world, &me);
  ARMCI_Group_size(&world, &members);
  REQUIRE(me == rank && members == size);

  long** parts = calloc((size_t)size, sizeof *parts);
  REQUIRE(parts != NULL && ARMCI_Malloc((void**)parts, 64 * sizeof(long)) == 0);
  int right = (rank + 1) % size;
  long sent = 1000 + in_all, old = -1;
  parts[rank][1] = 0;
  ARMCI_Barrier();
  REQUIRE(ARMCI_Put(&sent, parts[right], sizeof sent, right) == 0);
  REQUIRE(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, &parts[0][1], 1, 0) == 0);
  REQUIRE(old >= 0 && old < size);
  ARMCI_Barrier();
  /* The left neighbour in the communicator wrote its rank in the world. */
  int left = in_all;
  MPI_Sendrecv(&in_all, 1, MPI_INT, right, 1, &left, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
               MPI_STATUS_IGNORE);
  REQUIRE(parts[rank][0] == 1000 + left);
  REQUIRE(rank != 0 || parts[0][1] == size);

  /* A group in it, whose communicator Global Arrays reads. */
  int first = 0, in_group = -1;
  ARMCI_Group group;
  MPI_Comm of_group;
  ARMCI_Group_create(1, &first, &group);
  if (rank == 0) {
    ARMCI_Group_rank(&group, &in_group);
    memcpy(&of_group, &group, sizeof of_group);
    int together = 0;
    MPI_Comm_size(of_group, &together);
    REQUIRE(in_group == 0 && together == 1);
    ARMCI_Group_free(&group);
  }
  long sum = 1;
  armci_msg_lgop(&sum, 1, "+");
  REQUIRE(sum == size);
  ARMCI_Free(parts[rank]);
  free(parts);
  REQUIRE(ARMCI_Finalize() == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &in_all);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  int parts = argc > 1 ? atoi(argv[1]) : 1;
  int turned = argc > 2 && strcmp(argv[2], "turned") == 0;
  int colour = parts > 1 || in_all < all - 1 || all == 1 ? in_all % parts : MPI_UNDEFINED;
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, colour, turned ? -in_all : in_all, &comm);
  if (comm != MPI_COMM_NULL) {
    use(comm, colour == 1);
    MPI_Comm_free(&comm);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (in_all == 0) printf("communicators: right\n");
  MPI_Finalize();
  return 0;
}
