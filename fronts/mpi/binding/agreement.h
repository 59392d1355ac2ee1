// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What processes tell each other before they do together what all must do or none. All of them need
// the front: a process without it does not come, and the others say so after a while.

#include "binding/abi.h"

namespace mobius::mpi {

// The facts of all processes of a communicator: each brings its own as bits, all get those that any
// has. Collective over the communicator; `call` is the program's, for the message.
unsigned facts_of_all(unsigned mine, MPI_Comm comm, const char* call);

// What facts_of_all() gives if the MPI fails.
inline constexpr unsigned kUnknownFacts = ~0U;

}  // namespace mobius::mpi
