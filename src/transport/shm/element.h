// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Element types, and the loops that combine elements.

#include <mobius/types.h>

#include <cstddef>

#include "transport/shm/kernels/kernels.h"

namespace mobius::transport {

// 0 for an unknown type.
size_t element_bytes(mob_type_t type);
size_t element_alignment(mob_type_t type);
bool is_integer(mob_type_t type);

bool op_is_defined(mob_op_t op, mob_type_t type);

// The names in mobius/types.h, for messages; "nothing known" for unknown values.
const char* type_name(mob_type_t type);
const char* op_name(mob_op_t op);

// Both kinds of kernel: void (*)(const Rows& rows, size_t count, const void* scale, void* fetched).
//
// In each row, to[i] := to[i] op (scale × from[i]) for `count` elements. `scale` is one element, or
// null for 1; only MOB_SUM takes one. Old values go to `fetched`, packed, unless it is null. `to`
// is aligned to the type; the others need not be. `from` may be `to` itself; `fetched` overlaps
// neither. MOB_NO_OP does not read `from`.

// Not atomic: for private memory, or memory whose lock the caller holds. Null where not defined.
Combine plain_kernel(mob_op_t op, mob_type_t type);

// One atomic instruction combines each element. Null where the type needs a lock (float, double,
// complex). The loads of old values are acquires: the caller sees everything that happened before
// the target's element was stored with release, or before a fence in front of that store.
Combine atomic_kernel(mob_op_t op, mob_type_t type);

// All facts about an operation on a type, found by one look-up.
struct ElementOp {
  Combine plain;
  Combine atomic;
  size_t bytes;
  size_t alignment;
};
// False if the operation is not defined on the type.
bool find_element_op(mob_op_t op, mob_type_t type, ElementOp* found);

}  // namespace mobius::transport
