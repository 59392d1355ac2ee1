// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::os {

// The shortest time, of several measurements, that the removal of access to memory of this process
// takes by munmap() or mprotect(), in ticks (ticks.h). 0 if there are no ticks or the measurement
// is impossible. Takes some ten system calls of a few microseconds.
uint64_t least_ticks_to_unmap();

}  // namespace mobius::os
