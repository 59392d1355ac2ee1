// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::os {

// The least that it has taken of several times to take access to memory of this process away, by
// munmap() or mprotect(), in ticks (ticks.h). 0 where they are not counted, or that could not be
// tried. Takes some ten system calls of a few microseconds.
uint64_t least_ticks_to_unmap();

}  // namespace mobius::os
