// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The meaning of types and operations, in the simplest form, for comparison with the library.

#include <mobius/mobius.h>

#include "model/random.h"

namespace mobius_test {

size_t bytes_of(mob_type_t type);
size_t alignment_of(mob_type_t type);
bool is_real_or_complex(mob_type_t type);  // not an integer
bool is_defined(mob_op_t op, mob_type_t type);

// target := target op (scale × origin), one element of each; `scale` may be null, and `origin` with
// MOB_NO_OP.
void combine(mob_type_t type, mob_op_t op, void* target, const void* origin, const void* scale);

// An element for which sums and products of a few are exact in any order, and never 0.
void write_exact(Random& random, mob_type_t type, void* element);

// Whether arrays are equal as numbers; zeros of both signs are equal.
bool equal(mob_type_t type, const unsigned char* a, const unsigned char* b, size_t bytes);

const char* name_of(mob_type_t type);
const char* name_of(mob_op_t op);
const char* name_of(mob_kind_t kind);
const char* name_of(mob_shape_t shape);

}  // namespace mobius_test
