// SPDX-License-Identifier: BSD-3-Clause
#include "front.h"

namespace mobius::upc {

void open_memory() {}

bool is_in_area(mob_upc_ptr_t p, uint64_t bytes) {
  return bytes <= area_bytes() && p.thread < static_cast<uint32_t>(threads());
}

}  // namespace mobius::upc
