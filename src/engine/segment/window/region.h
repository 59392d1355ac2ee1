// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Regions that one process makes by itself, without the others. Local peers reach them like any
// other region; entries of peers about a region that is gone do no harm
// (Segment::close_chunks()).

#include "engine/segment/window/chunk_table.h"

namespace mobius::engine {

class Segment;

// Whether the memory of a region is reserved from the beginning, so that using it cannot fail, or
// taken page by page, like other memory of a program.
enum class RegionMemory { kReserved, kAsUsed };

// Makes a region of `bytes` (> 0) bytes of zeros that this process owns. Any thread.
mob_status_t make_region(Segment& segment, uint64_t bytes, RegionMemory memory, Region* region);

// Gives a region back that nobody uses any more. Any thread.
void drop_region(Segment& segment, const Region& region);

// Gives back all regions that this process owns, whatever made them. For a process that leaves a
// job that goes on: no process uses them any more.
void drop_own_regions(Segment& segment);

}  // namespace mobius::engine
