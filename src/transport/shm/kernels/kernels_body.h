// SPDX-License-Identifier: BSD-3-Clause
// No include guard: kernels_*.cpp include this once each, with MOB_KERNELS and MOB_KERNELS_NAME
// set.
//
// Everything here and in the three files below has internal linkage or is inlined, and uses nothing
// from the C++ library. Otherwise the linker would merge functions of one name, and processors
// could run code compiled for an instruction set that they lack.

#include "transport/shm/kernels/combine_body.h"
#include "transport/shm/kernels/move_body.h"
#include "transport/shm/kernels/spans_body.h"

namespace mobius::transport {

// NOLINTNEXTLINE(misc-definitions-in-headers): one name per including file
constinit const Kernels MOB_KERNELS = [] {
  Kernels kernels = {};
  kernels.name = MOB_KERNELS_NAME;
  kernels.move_rows = &move_rows;
  kernels.stream = &stream;
  kernels.look_over = &look_over;
  fill_combine(kernels.combine);
  return kernels;
}();

}  // namespace mobius::transport
