// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The MPI library that the program uses beside ARMCI, if any. It is looked up among the loaded
// libraries, never linked: one libarmci serves programs of any MPI and of none.

#include <cstdint>

namespace mobius::armci::mpi_beside {

// A communicator as it is passed in a register: MPI_Comm is an int or a pointer.
using Comm = uintptr_t;

// Whether MPI is loaded, initialised and not finalised.
bool is_live();

// Whether MPI_COMM_WORLD can be found; `*comm` becomes its handle.
bool world(Comm* comm);

// Whether a communicator has the processes of MPI_COMM_WORLD in the same order, as far as MPI can
// tell.
bool is_like_world(Comm comm);

// The caller's rank in a communicator, and its size. False if MPI cannot tell.
bool place(Comm comm, int* rank, int* size);

// MPI_Comm_split(), collective over `parent`; processes with a negative colour join none of the new
// communicators. False, with 0 in `*comm`, if MPI fails or the caller joins none.
bool split(Comm parent, int colour, int key, Comm* comm);

// MPI_Comm_free(), collective over `comm`.
void release(Comm comm);

// Ends the job through MPI, if it is live. Returns if it is not.
void abort(int code);

}  // namespace mobius::armci::mpi_beside
