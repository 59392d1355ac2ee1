// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The heap of the C library: the memory that malloc() takes from the end of the program's data
// (brk).

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

namespace mobius::os {

// Makes malloc() take blocks of every size from the heap. The heap grows by `bytes` of address
// space at once and never shrinks from then on. Threads that had an arena of their own keep it, and
// a thread that frees a block of such an arena may get it again. `start` and `end` enclose whole
// pages. MOB_ERR_ARGUMENT if malloc() is not the C library's, or works differently; MOB_ERR_MEMORY.
mob_status_t grow_heap(size_t bytes, uintptr_t* start, uintptr_t* end);

}  // namespace mobius::os
