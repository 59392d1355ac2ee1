// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The carriers of windows: empty windows of the MPI. Two threads of a process never make or free
// one at once. MPICH (up to 5.0.2 at least) allows that, but takes windows out of a table of its
// own without a lock; its heap breaks then, about once in 2,000 times.

#include "binding/abi.h"
#include "windows/window.h"

namespace mobius::mpi {

// Collective over the job: makes and frees what orders the carriers of different windows.
bool open_carriers();
void close_carriers();

// Both are collective over the window and return what the MPI returned.
int make_carrier(const Window& window, MPI_Info info, MPI_Comm comm, MPI_Win* carrier);
int free_carrier(const Window& window, MPI_Win* carrier);

}  // namespace mobius::mpi
