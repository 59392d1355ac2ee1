// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The info keys of windows: which of them the front heeds, and what MPI_Win_get_info() says.

#include "binding/abi.h"
#include "windows/window.h"

namespace mobius::mpi {

// Reads the keys that the front heeds; others are the MPI's.
void read_info(MPI_Info info, Window* window);
// Whether parts of a shared window may lie apart.
bool asks_for_parts_apart(MPI_Info info);
// The alignment that MPI_Win_allocate() is asked for; 0: none.
size_t asked_alignment(MPI_Info info);

}  // namespace mobius::mpi
