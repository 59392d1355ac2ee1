// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Parts that one process makes for itself, without the others. They reach it like any other; what
// they still remember of it after it is gone does no harm (Segment::close_chunks()).

#include "engine/segment/chunk_table.h"

namespace mobius::engine {

class Segment;

// Whether the memory of a part is there from the beginning, so that none of it is missing when it
// is used, or is taken page by page, as for any other memory of a program.
enum class RegionMemory { kReserved, kAsUsed };

// A part of `bytes` (> 0) bytes of zeros that this process owns. Any thread.
mob_status_t make_region(Segment& segment, uint64_t bytes, RegionMemory memory, Region* part);

// Gives it back. Nobody uses it any more. Any thread.
void drop_region(Segment& segment, const Region& part);

// MOB_ERR_MEMORY where the host has less than `bytes` bytes left: asked first, because the kernel
// may rather end processes than refuse.
mob_status_t check_available(uint64_t bytes);

}  // namespace mobius::engine
