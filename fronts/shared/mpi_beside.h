// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The MPI library that the program uses beside a front, if any. It is looked up among the loaded
// libraries, never linked: one library of the front serves programs of any MPI and of none. All is
// inline, because a program may link several fronts statically.

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace mobius::mpi_beside {

// A communicator as it is passed in a register: MPI_Comm is an int or a pointer.
using Comm = uintptr_t;

// MPI_COMM_WORLD of MPICH's ABI, which Intel MPI, MVAPICH and Cray MPICH share.
inline constexpr Comm kMpichWorld = 0x44000000;

// A function of MPI; null if no MPI is loaded.
template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

inline bool answers_yes(const char* question) {
  auto* ask = find<int(int*)>(question);
  int answer = 0;
  return ask != nullptr && ask(&answer) == 0 && answer != 0;
}

// Whether MPI is loaded, initialised and not finalised.
inline bool is_live() { return answers_yes("MPI_Initialized") && !answers_yes("MPI_Finalized"); }

// Whether MPI_COMM_WORLD can be found; `*comm` becomes its handle.
inline bool world(Comm* comm) {
  if (void* open_mpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world")) {
    *comm = reinterpret_cast<Comm>(open_mpi);
    return true;
  }
  auto* version = find<int(char*, int*)>("MPI_Get_library_version");
  char text[8192] = "";  // MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  if (version == nullptr || version(text, &length) != 0) return false;
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
    if (std::strstr(text, name) == nullptr) continue;
    *comm = kMpichWorld;
    return true;
  }
  return false;
}

// Whether a communicator has the processes of MPI_COMM_WORLD in the same order, as far as MPI can
// tell.
inline bool is_like_world(Comm comm) {
  constexpr int kCongruent = 1;  // MPI_CONGRUENT, after MPI_IDENT; the same in both ABIs
  Comm everybody = 0;
  int relation = 0;
  auto* compare = find<int(Comm, Comm, int*)>("MPI_Comm_compare");
  return compare == nullptr || !world(&everybody) || compare(comm, everybody, &relation) != 0 ||
         relation <= kCongruent;
}

// The caller's rank in a communicator, and its size. False if MPI cannot tell.
inline bool place(Comm comm, int* rank, int* size) {
  auto* ask_rank = find<int(Comm, int*)>("MPI_Comm_rank");
  auto* ask_size = find<int(Comm, int*)>("MPI_Comm_size");
  return ask_rank != nullptr && ask_size != nullptr && ask_rank(comm, rank) == 0 &&
         ask_size(comm, size) == 0;
}

// MPI_Comm_split(), collective over `parent`; processes with a negative colour join none of the new
// communicators. False, with 0 in `*comm`, if MPI fails or the caller joins none.
inline bool split(Comm parent, int colour, int key, Comm* comm) {
  constexpr int kUndefined = -32766;  // MPI_UNDEFINED, the same in both ABIs
  *comm = 0;                          // an MPI whose communicator is an int writes only half of it
  auto* call = find<int(Comm, int, int, Comm*)>("MPI_Comm_split");
  if (call == nullptr || call(parent, colour >= 0 ? colour : kUndefined, key, comm) != 0 ||
      colour < 0) {
    *comm = 0;
  }
  return *comm != 0;
}

// MPI_Comm_free(), collective over `comm`.
inline void release(Comm comm) {
  auto* call = find<int(Comm*)>("MPI_Comm_free");
  if (call != nullptr && is_live()) call(&comm);
}

// Ends the job through MPI, if it is live. Returns if it is not.
inline void abort(int code) {
  Comm comm = 0;
  auto* end = find<int(Comm, int)>("MPI_Abort");
  if (end != nullptr && is_live() && world(&comm)) end(comm, code);
}

}  // namespace mobius::mpi_beside
