// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "binding/abi.h"
#include "windows/window.h"

namespace mobius::mpi {

// The value of a predefined attribute in the form that C has: the base, or a pointer to the value.
// False if the keyval is another one.
bool predefined_attribute(Window* window, int keyval, void** value);

// The value of a predefined attribute as the integer that Fortran has.
bool predefined_attribute(Window* window, int keyval, MPI_Aint* value);

}  // namespace mobius::mpi
