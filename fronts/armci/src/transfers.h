// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the calls of all shapes have in common.

#include "handles.h"

namespace mobius::armci {

// What an accumulate does with elements; a put or get has none.
struct Combination {
  int datatype = -1;
  const void* scale = nullptr;
};

// Writes type, operation and scale of an accumulate into a transfer.
void set_combination(mob_transfer_t* transfer, const Combination& combination,
                     const char* function);

}  // namespace mobius::armci
