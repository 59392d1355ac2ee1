// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "random/program.h"

namespace random_program {

// Cuts the memory of every rank into segments for one round.
std::vector<Segment> cut_memory(mobius_test::Random& random, const Shape& shape);

// An operation whose combinations give the same result in any order.
mob_op_t commuting_op(mobius_test::Random& random, mob_type_t type);

}  // namespace random_program
