// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Errors that the front finds are raised as the MPI raises its own: through the error handler of
// the window, or of the communicator where there is no window yet, with a class of the standard.
// Where the handler ends the program, a line says before what is wrong: the MPI names only the
// class, and MPI_Win_call_errhandler() as the call.

#include <mobius/mobius.h>

#include "binding/abi.h"
#include "windows/window.h"

namespace mobius::mpi {

// The value that the program's call is to return. Without a reason the line has one of the class.
[[gnu::cold]] int raise(const Window& window, int error_class, const char* reason = nullptr);
[[gnu::cold]] int raise(MPI_Comm comm, int error_class);

// The class of a failed call of Möbius.
int class_of(mob_status_t status);
// Raises that, for the reason that Möbius gives.
[[gnu::cold]] int raise_status(const Window& window, mob_status_t status);

inline int raise_if(mob_status_t status, const Window& window) {
  if (status == MOB_OK) [[likely]] {
    return MPI_SUCCESS;
  }
  return raise_status(window, status);
}

}  // namespace mobius::mpi
