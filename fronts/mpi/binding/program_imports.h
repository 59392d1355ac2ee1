// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Facts about the program and its MPI, found in the libraries that the loader has loaded.

namespace mobius::mpi {

// Whether the program itself, not only a library of it, calls functions that make windows.
bool program_makes_windows();

// Ends the process, with a line that says which front is the right one, if the MPI that is loaded
// is not of the kind that this front is compiled for: every handle would be misread.
void check_mpi();

}  // namespace mobius::mpi
