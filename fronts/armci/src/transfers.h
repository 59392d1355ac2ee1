// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the calls of all shapes.

#include "handles.h"

namespace mobius::armci {

// The operation of an accumulate on elements; empty for a put or get.
struct Combination {
  int datatype = -1;
  const void* scale = nullptr;
};

// Sets type, operation and scale of an accumulate in a transfer.
void set_combination(mob_transfer_t* transfer, const Combination& combination,
                     const char* function);

}  // namespace mobius::armci
