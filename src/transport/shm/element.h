// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Elements: their types, and the loops that combine them.

#include <mobius/types.h>

#include <cstddef>

#include "transport/shm/kernels.h"

namespace mobius::transport {

// 0 for what is not a type.
size_t element_bytes(mob_type_t type);
size_t element_alignment(mob_type_t type);
bool is_integer(mob_type_t type);

bool op_is_defined(mob_op_t op, mob_type_t type);

// As in mobius/types.h, for messages; of what is none of them "nothing known".
const char* type_name(mob_type_t type);
const char* op_name(mob_op_t op);

// Both kinds of kernel: void (*)(const Rows& rows, size_t count, const void* scale, void* fetched).
//
// Of each row, to[i] := to[i] op (scale × from[i]) for `count` elements. `scale` is one element or
// null for 1, and given only with MOB_SUM. Old values go to `fetched`, packed, unless it is null.
// `to` is aligned to the type, the others need not be; `from` may be `to` itself, `fetched`
// overlaps neither. MOB_NO_OP does not read `from`.

// Not atomic: for memory that is private, or whose lock is held. Null where not defined.
Combine plain_kernel(mob_op_t op, mob_type_t type);

// Each element is combined by one atomic operation of the hardware. Null where the type needs a
// lock (float, double, complex). Old values are acquired: what happened before the target's element
// was stored with release, or before a fence in front of that, is visible.
Combine atomic_kernel(mob_op_t op, mob_type_t type);

// All of the above that is to be known of an operation on a type, in one look.
struct ElementOp {
  Combine plain;
  Combine atomic;
  size_t bytes;
  size_t alignment;
};
// False if it is not defined.
bool find_element_op(mob_op_t op, mob_type_t type, ElementOp* found);

}  // namespace mobius::transport
