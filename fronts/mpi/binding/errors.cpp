// SPDX-License-Identifier: BSD-3-Clause
#include "binding/errors.h"

#include "binding/real.h"

namespace mobius::mpi {

int raise(const Window& window, int error_class) {
  // Returns what the handler returns to, or does not.
  static_cast<void>(real::Win_call_errhandler(window.carrier, error_class));
  return error_class;
}

int raise(MPI_Comm comm, int error_class) {
  static_cast<void>(real::Comm_call_errhandler(comm, error_class));
  return error_class;
}

int class_of(mob_status_t status) {
  switch (status) {
    case MOB_ERR_RANGE:
      return MPI_ERR_RMA_RANGE;
    case MOB_ERR_RANK:
      return MPI_ERR_RANK;
    case MOB_ERR_MEMORY:
      return MPI_ERR_NO_MEM;
    case MOB_ERR_STATE:
      return MPI_ERR_RMA_SYNC;
    case MOB_ERR_ARGUMENT:
      return MPI_ERR_ARG;
    default:
      return MPI_ERR_OTHER;
  }
}

}  // namespace mobius::mpi
