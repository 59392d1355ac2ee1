// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The heap of the C library: what malloc() takes from the end of the program's data (brk).

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

namespace mobius::os {

// Lets malloc() take all it gives, of any size, from the heap, which grows by `bytes` of address
// space at once and from then on never shrinks. Threads that had an arena of their own keep it, and
// a block of theirs that somebody else frees may be given out by that one again. `start` and `end`
// are of whole pages. MOB_ERR_ARGUMENT where malloc() is not the C library's, or does not work like
// that; MOB_ERR_MEMORY.
mob_status_t grow_heap(size_t bytes, uintptr_t* start, uintptr_t* end);

}  // namespace mobius::os
