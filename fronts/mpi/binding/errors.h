// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Errors that the front finds are raised as the MPI raises its own: through the error handler of
// the window, or of the communicator where there is no window yet, with a class of the standard.

#include <mobius/mobius.h>

#include "binding/abi.h"
#include "windows/window.h"

namespace mobius::mpi {

// The value that the program's call is to return.
[[gnu::cold]] int raise(const Window& window, int error_class);
[[gnu::cold]] int raise(MPI_Comm comm, int error_class);

// The class of a failed call of Möbius.
int class_of(mob_status_t status);

inline int raise_if(mob_status_t status, const Window& window) {
  if (status == MOB_OK) [[likely]] {
    return MPI_SUCCESS;
  }
  return raise(window, class_of(status));
}

}  // namespace mobius::mpi
