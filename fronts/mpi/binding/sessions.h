// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// MPI-4's sessions: programs that have no MPI_COMM_WORLD. The job of such a program begins with its
// first window of all processes, and ends with the session.

#include "binding/abi.h"

namespace mobius::mpi {

// Whether a communicator is of all processes ("mpi://WORLD") of the only session that is open.
bool is_of_session_world(MPI_Comm comm);

}  // namespace mobius::mpi
