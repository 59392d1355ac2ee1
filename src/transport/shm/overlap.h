// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace mobius::transport {

// Whether two runs of a box share a byte. The box has runs of `run_bytes` bytes and `dimensions`
// (at most 7) dimensions; all counts are at least 2, and its bytes fit the address space.
//
// Never true for a box whose runs are disjoint. The search stops after some thousand steps, which
// only boxes of many dimensions with nearly equal strides reach, and then returns false.
bool runs_overlap(size_t run_bytes, int dimensions, const size_t* counts, const ptrdiff_t* strides);

}  // namespace mobius::transport
