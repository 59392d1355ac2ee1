// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The MPI that this front is compiled for, and all that differs between their binary interfaces:
// Open MPI's handles are addresses of objects of its library, MPICH's are numbers of 32 bits, the
// standard ABI's are numbers in pointers. The sources see <mpi.h> through this file alone.
//
// The front has no undefined name of an MPI, so that it can be loaded before an MPI is, or in a
// process that never has one: functions are found by real.h, Open MPI's objects here.

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(MOBIUS_MPI_OMPI)

namespace mobius::mpi {

// An object of the MPI that is loaded; null if there is none.
void* find_object(const char* name);

template <size_t kBytes>
struct ObjectName {
  // Implicit: the name is a literal in OMPI_PREDEFINED_GLOBAL.
  // NOLINTNEXTLINE(google-explicit-constructor, hicpp-explicit-conversions)
  consteval ObjectName(const char (&name)[kBytes]) { std::copy_n(name, kBytes, text); }
  char text[kBytes]{};
};

template <ObjectName kName>
void* object() {
  static std::atomic<void*> found;
  void* known = found.load(std::memory_order_relaxed);
  if (known != nullptr) [[likely]] {
    return known;
  }
  known = find_object(kName.text);
  found.store(known, std::memory_order_relaxed);
  return known;
}

}  // namespace mobius::mpi

#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(::mobius::mpi::object<#global>()))

#endif

// The calls with MPI_Count: MPI-4 and later.
#if !defined(MOBIUS_MPI_OMPI) && MPI_VERSION >= 4
#define MOBIUS_MPI_HAS_LARGE_COUNTS 1
#endif

// MPI_Request_get_status_all() and its kin: MPI-4.1 and later.
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define MOBIUS_MPI_HAS_STATUS_OF_SEVERAL 1
#endif

// Sessions: MPI-4 and later, and Open MPI 5, which says that it is of MPI-3.1. The front for Open
// MPI is the same for 4 and 5, whichever header it is made with.
#if MPI_VERSION >= 4 || defined(MOBIUS_MPI_OMPI)
#define MOBIUS_MPI_HAS_SESSIONS 1
#endif
#if defined(MOBIUS_MPI_OMPI) && OMPI_MAJOR_VERSION < 5
struct ompi_instance_t;
using MPI_Session = ompi_instance_t*;
extern "C" int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
extern "C" int PMPI_Session_finalize(MPI_Session* session);
extern "C" int PMPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info,
                                           MPI_Errhandler errhandler, MPI_Comm* comm);
extern "C" int PMPI_Group_from_session_pset(MPI_Session session, const char* name,
                                            MPI_Group* group);
#endif

namespace mobius::mpi {

// A handle as a number, whatever it is in this MPI.
template <typename Handle>
uintptr_t number_of(Handle handle) {
  if constexpr (sizeof(Handle) == sizeof(uint32_t)) {
    return std::bit_cast<uint32_t>(handle);
  } else {
    return std::bit_cast<uintptr_t>(handle);
  }
}

}  // namespace mobius::mpi
