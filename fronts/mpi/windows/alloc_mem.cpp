// SPDX-License-Identifier: BSD-3-Clause

// MPI_Alloc_mem(): once there is a job, memory of Möbius, which need not be exposed to be a target.

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"
#include "windows/info.h"
#include "windows/program_memory.h"

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Alloc_mem)(MPI_Aint size, MPI_Info info, void* base) {
  void* memory = nullptr;
  if (!is_joined() || size <= 0 || base == nullptr ||
      mob_local_alloc(static_cast<size_t>(size), asked_alignment(info), &memory) != MOB_OK) {
    return real::Alloc_mem(size, info, base);
  }
  add_own_memory(memory, static_cast<size_t>(size), {mob_rank(), memory}, OwnKind::kAllocated);
  *static_cast<void**>(base) = memory;
  return MPI_SUCCESS;
}

MOBIUS_MPI_TWIN(Free_mem)(void* base) {
  const OwnKind kind = base != nullptr ? own_memory_at(base) : OwnKind::kNone;
  if (kind == OwnKind::kNone) return real::Free_mem(base);
  // MPI_Win_free() frees the memory of a window.
  if (kind == OwnKind::kWindow) return raise(MPI_COMM_SELF, MPI_ERR_BASE);
  remove_own_memory(base);
  // After the end of the job the memory is gone already.
  if (is_joined()) static_cast<void>(mob_local_free(base));
  return MPI_SUCCESS;
}
