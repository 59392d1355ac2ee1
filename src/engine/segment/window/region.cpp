// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/region.h"

#include "engine/segment/segment.h"

namespace mobius::engine {

mob_status_t make_region(Segment& segment, uint64_t bytes, RegionMemory memory, Region* region) {
  const uint64_t reserved = memory == RegionMemory::kReserved ? bytes : 0;
  uint64_t first = 0;
  if (const mob_status_t status = segment.chunks().claim(chunks_of(bytes), &first)) return status;
  const Region made{first << kChunkShift, bytes, segment.peers().host().index()};
  mob_status_t status = segment.reserve_memory(made.offset, reserved);
  if (status == MOB_OK) {
    status = segment.window().allow(made.offset, chunks_of(bytes));
    if (status != MOB_OK) segment.release_memory(made.offset, bytes);
  }
  if (status != MOB_OK) {
    segment.chunks().release(first, chunks_of(bytes));
    return status;
  }
  segment.chunks().set_region(first, made);
  *region = made;
  return MOB_OK;
}

void drop_region(Segment& segment, const Region& region) {
  const uint64_t chunks = chunks_of(region.bytes);
  segment.chunks().clear_region(region);
  segment.close_chunks(region.offset, chunks);
  // Whole chunks: somebody may have touched what is beyond the last byte.
  segment.release_memory(region.offset, chunks << kChunkShift);
  segment.chunks().release(region.offset >> kChunkShift, chunks);
}

void drop_own_regions(Segment& segment) {
  ChunkTable& chunks = segment.chunks();
  for (uint64_t chunk = 0; chunk < chunks.used(); ++chunk) {
    Region region{};
    if (chunks.find(chunk << kChunkShift, &region) && region.offset == chunk << kChunkShift &&
        region.owner == segment.peers().host().index()) {
      drop_region(segment, region);
    }
  }
}

}  // namespace mobius::engine
