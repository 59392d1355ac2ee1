// SPDX-License-Identifier: BSD-3-Clause

// The predefined attributes of windows: the carrier's would describe an empty window.

#include "windows/attributes.h"

#include "binding/real.h"

namespace mobius::mpi {

bool predefined_attribute(Window* window, int keyval, void** value) {
  if (keyval == MPI_WIN_BASE) {
    *value = window->base;
  } else if (keyval == MPI_WIN_SIZE) {
    *value = &window->bytes;
  } else if (keyval == MPI_WIN_DISP_UNIT) {
    *value = &window->unit;
  } else if (keyval == MPI_WIN_CREATE_FLAVOR) {
    *value = &window->flavor;
  } else if (keyval == MPI_WIN_MODEL) {
    window->model = MPI_WIN_UNIFIED;
    *value = &window->model;
  } else {
    return false;
  }
  return true;
}

bool predefined_attribute(Window* window, int keyval, MPI_Aint* value) {
  void* found = nullptr;
  if (!predefined_attribute(window, keyval, &found)) return false;
  if (keyval == MPI_WIN_BASE) {
    *value = reinterpret_cast<MPI_Aint>(found);
  } else if (keyval == MPI_WIN_SIZE) {
    *value = *static_cast<MPI_Aint*>(found);
  } else {
    *value = *static_cast<int*>(found);
  }
  return true;
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Win_get_attr)(MPI_Win win, int keyval, void* value, int* flag) {
  Window* window = find_window(win);
  if (window == nullptr || value == nullptr || flag == nullptr ||
      !predefined_attribute(window, keyval, static_cast<void**>(value))) {
    return real::Win_get_attr(win, keyval, value, flag);
  }
  *flag = 1;
  return MPI_SUCCESS;
}
