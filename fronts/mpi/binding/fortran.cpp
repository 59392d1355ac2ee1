// SPDX-License-Identifier: BSD-3-Clause

// The Fortran calls that do not pass through the C functions: reading and setting attributes. All
// other Fortran calls reach MPI_X() or PMPI_X().

#include "binding/real.h"
#include "windows/attributes.h"

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

#if defined(MOBIUS_MPI_OMPI)

namespace mobius::mpi::real {
inline constinit const Real<decltype(PMPI_Win_f2c)> Win_f2c{"PMPI_Win_f2c"};
}

// Open MPI's Fortran library has this function under all names that compilers give it.
extern "C" __attribute__((visibility("default"))) void ompi_win_get_attr_f(const MPI_Fint* win,
                                                                           const MPI_Fint* keyval,
                                                                           MPI_Aint* value,
                                                                           MPI_Fint* flag,
                                                                           MPI_Fint* result) {
  MPI_Win handle = real::Win_f2c(*win);
  Window* window = find_window(handle);
  if (window != nullptr && predefined_attribute(window, *keyval, value)) {
    *flag = 1;
    if (result != nullptr) *result = MPI_SUCCESS;
    return;
  }
  static const Real<void(const MPI_Fint*, const MPI_Fint*, MPI_Aint*, MPI_Fint*, MPI_Fint*)> next{
      "ompi_win_get_attr_f"};
  next(win, keyval, value, flag, result);
}

#define MOBIUS_MPI_FORTRAN_NAME(name)                                                        \
  extern "C" __attribute__((visibility("default"), alias("ompi_win_get_attr_f"))) void name( \
      const MPI_Fint*, const MPI_Fint*, MPI_Aint*, MPI_Fint*, MPI_Fint*)

extern "C" __attribute__((visibility("default"))) void ompi_win_set_attr_f(const MPI_Fint* win,
                                                                           const MPI_Fint* keyval,
                                                                           const MPI_Aint* value,
                                                                           MPI_Fint* result) {
  MPI_Win handle = real::Win_f2c(*win);
  if (Window* window = find_window(handle)) window->is_changed = true;
  static const Real<void(const MPI_Fint*, const MPI_Fint*, const MPI_Aint*, MPI_Fint*)> next{
      "ompi_win_set_attr_f"};
  next(win, keyval, value, result);
}

#define MOBIUS_MPI_FORTRAN_SET(name)                                                         \
  extern "C" __attribute__((visibility("default"), alias("ompi_win_set_attr_f"))) void name( \
      const MPI_Fint*, const MPI_Fint*, const MPI_Aint*, MPI_Fint*)

MOBIUS_MPI_FORTRAN_NAME(mpi_win_get_attr);
MOBIUS_MPI_FORTRAN_NAME(mpi_win_get_attr_);
MOBIUS_MPI_FORTRAN_NAME(mpi_win_get_attr__);
MOBIUS_MPI_FORTRAN_NAME(MPI_WIN_GET_ATTR);
MOBIUS_MPI_FORTRAN_NAME(pmpi_win_get_attr);
MOBIUS_MPI_FORTRAN_NAME(pmpi_win_get_attr_);
MOBIUS_MPI_FORTRAN_NAME(pmpi_win_get_attr__);
MOBIUS_MPI_FORTRAN_NAME(PMPI_WIN_GET_ATTR);
MOBIUS_MPI_FORTRAN_SET(mpi_win_set_attr);
MOBIUS_MPI_FORTRAN_SET(mpi_win_set_attr_);
MOBIUS_MPI_FORTRAN_SET(mpi_win_set_attr__);
MOBIUS_MPI_FORTRAN_SET(MPI_WIN_SET_ATTR);
MOBIUS_MPI_FORTRAN_SET(pmpi_win_set_attr);
MOBIUS_MPI_FORTRAN_SET(pmpi_win_set_attr_);
MOBIUS_MPI_FORTRAN_SET(pmpi_win_set_attr__);
MOBIUS_MPI_FORTRAN_SET(PMPI_WIN_SET_ATTR);

#elif defined(MOBIUS_MPI_MPICH)

// The Fortran libraries of MPICH and its descendants call this, with the form of the value that
// they want: a pointer as in C, or an integer.
extern "C" __attribute__((visibility("default"))) int MPII_Win_get_attr(MPI_Win win, int keyval,
                                                                        void* value, int* flag,
                                                                        int form) {
  constexpr int kPointer = 0;
  // Fortran's predefined keyvals are C's plus 1.
  constexpr int kPredefined = 0x66;
  const int keyval_of_c = keyval >> 24 == kPredefined && keyval % 2 == 0 ? keyval - 1 : keyval;
  Window* window = find_window(win);
  const bool is_found =
      window != nullptr &&
      (form == kPointer ? predefined_attribute(window, keyval_of_c, static_cast<void**>(value))
                        : predefined_attribute(window, keyval_of_c, static_cast<MPI_Aint*>(value)));
  if (is_found) {
    *flag = 1;
    return MPI_SUCCESS;
  }
  static const Real<int(MPI_Win, int, void*, int*, int)> next{"MPII_Win_get_attr"};
  return next(win, keyval, value, flag, form);
}

extern "C" __attribute__((visibility("default"))) int MPII_Win_set_attr(MPI_Win win, int keyval,
                                                                        void* value, int form) {
  if (Window* window = find_window(win)) window->is_changed = true;
  static const Real<int(MPI_Win, int, void*, int)> next{"MPII_Win_set_attr"};
  return next(win, keyval, value, form);
}

#endif
