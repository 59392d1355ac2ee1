// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "random/program.h"

namespace random_program {

// Cuts the memory of every rank into segments for one round.
std::vector<Segment> cut_memory(mobius_test::Random& random, const Shape& shape);

}  // namespace random_program
