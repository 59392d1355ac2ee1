// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The job of Möbius behind the program's MPI: of the processes of MPI_COMM_WORLD, in its order.
// It begins when the first window of all of them is made, or with MPI_Init() where the program
// itself calls functions that make windows, and ends with MPI_Finalize(). A program that uses a
// session instead of MPI_Init() has the job from its first window of all processes, in the order of
// that communicator, to the end of its last session.

#include <mobius/mobius.h>

#include <vector>

#include "binding/abi.h"

namespace mobius::mpi {

// Whether the job is there. Collective over the communicator of a window about to be made: begins
// the job if that is of all processes.
bool join_job(MPI_Comm comm);
bool is_joined();
bool is_intercommunicator(MPI_Comm comm);
const char* why_not_joined();
// Ends the job if it began without MPI_Init(). Collective over it.
void end_job_of_session();

// The rank in the job of each member of a communicator; empty if one has none.
std::vector<mob_rank_t> job_ranks(MPI_Comm comm);

// While it lives, calls of Möbius that wait let the MPI go on with the program's messages: the
// processes waited for may themselves wait for those.
class Progressing {
 public:
  Progressing();
  ~Progressing();
  Progressing(const Progressing&) = delete;
  Progressing& operator=(const Progressing&) = delete;
};

// Lets the MPI do what there is to do; returns at once.
void let_mpi_progress();

#if defined(MOBIUS_MPI_OMPI)
// One that is complete already, and that all such requests share; null if there is none.
extern constinit MPI_Request done_request;
#endif

// A request of the MPI that is complete; the class of the error, or MPI_SUCCESS.
int make_done_request(MPI_Request* request);

// Counts for MOBIUS_STATS: windows served, and those left to the MPI with the reason.
void count_served();
void count_left(const char* reason);

}  // namespace mobius::mpi
