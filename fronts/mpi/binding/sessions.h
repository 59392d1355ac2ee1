// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// MPI-4's sessions: programs that have no MPI_COMM_WORLD. The job of such a program begins with its
// first window of all processes, and ends with the last session that the program has open.

#include "binding/abi.h"

namespace mobius::mpi {

// Whether the program has opened a session, which may have ended.
bool has_opened_session();

// Whether a communicator is of all processes ("mpi://WORLD") of the only session that is open.
bool is_of_session_world(MPI_Comm comm);

// Opens a session of the front, because the program may end any of its own before the job ends.
// Returns a communicator of the new session with the processes of `comm`, which
// is_of_session_world(), in its order; MPI_COMM_NULL if the MPI cannot make it. Collective over
// `comm`.
MPI_Comm open_own_session(MPI_Comm comm);
// Ends that session, once all its objects are freed. Does nothing if it is not open.
void close_own_session();

}  // namespace mobius::mpi
