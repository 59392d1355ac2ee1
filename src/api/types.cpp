// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/types.h>

#include "transport/shm/element.h"

// C callers may pass any value.
size_t mob_type_bytes(mob_type_t type) { return mobius::transport::element_bytes(type); }

int mob_op_is_defined(mob_op_t op, mob_type_t type) {
  return mobius::transport::op_is_defined(op, type) ? 1 : 0;
}
