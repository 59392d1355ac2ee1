// SPDX-License-Identifier: BSD-3-Clause
#include "binding/errors.h"

#include <cstdio>

#include "binding/real.h"

namespace mobius::mpi {

namespace {

const char* reason_of_class(int error_class) {
  switch (error_class) {
    case MPI_ERR_RMA_SYNC:
      return "the call does not fit the window's epochs: operations and flushes need one that is "
             "open "
             "to the target, and each has to end before another one begins";
    case MPI_ERR_RANK:
      return "the target is no rank of the window's group";
    case MPI_ERR_GROUP:
      return "the group is none, or has processes that are not in the window's group";
    case MPI_ERR_DISP:
      return "the target displacement is negative";
    case MPI_ERR_RMA_ATTACH:
      return "the memory cannot be attached, overlaps what is attached, or is not attached there";
    case MPI_ERR_RMA_FLAVOR:
      return "the call is not for windows of this flavor";
    case MPI_ERR_RMA_SHARED:
      return "the memory of that process cannot be shared with this one";
    case MPI_ERR_LOCKTYPE:
      return "the lock is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE";
    case MPI_ERR_ASSERT:
      return "the assertion has bits that the call does not take";
    case MPI_ERR_TYPE:
      return "a datatype is none, both sides differ in bytes or elements, or the call does not "
             "take it";
    case MPI_ERR_OP:
      return "the operation is not predefined, or not for elements of that type";
    case MPI_ERR_COUNT:
      return "a count is negative";
    case MPI_ERR_BUFFER:
      return "a buffer is a null pointer";
    default:
      return nullptr;
  }
}

bool ends_program(const Window& window) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (real::Win_get_errhandler(window.carrier, &handler) != MPI_SUCCESS) return false;
  const bool ends = handler == MPI_ERRORS_ARE_FATAL;
  static_cast<void>(real::Errhandler_free(&handler));
  return ends;
}

}  // namespace

int raise(const Window& window, int error_class, const char* reason) {
  if (reason == nullptr) reason = reason_of_class(error_class);
  if (reason != nullptr && ends_program(window)) {
    std::fprintf(stderr, "libmobius_" MOBIUS_MPI_FRONT ": rank %d: %s\n", mob_rank(), reason);
  }
  // Returns what the handler returns to, or does not.
  static_cast<void>(real::Win_call_errhandler(window.carrier, error_class));
  return error_class;
}

int raise(MPI_Comm comm, int error_class) {
  static_cast<void>(real::Comm_call_errhandler(comm, error_class));
  return error_class;
}

int raise_status(const Window& window, mob_status_t status) {
  return raise(window, class_of(status), mob_last_error());
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
