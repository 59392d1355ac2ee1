// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/chunk_table.h"

#include <algorithm>

#include "base/status.h"
#include "engine/segment/locks/shared_lock.h"
#include "os/memory/memfd.h"

namespace mobius::engine {

void ChunkTable::open(Peers& peers, const SegmentLayout& memory, size_t chunks) {
  memory_ = &memory;
  entries_ = memory.chunks();
  count_ = std::min<size_t>(chunks, kClaimed - 1);
  peers_ = &peers;
}

// Entries below `end` get memory before they are written.
mob_status_t ChunkTable::reserve_entries(uint64_t end) {
  ChunkTableHeader& header = memory_->chunk_table();
  const uint64_t used = header.high_water.load(std::memory_order_relaxed);
  if (end <= used) return MOB_OK;
  const mob_status_t status =
      os::memfd_reserve(peers_->host().segment(), kChunkTableOffset + used * sizeof(ChunkEntry),
                        (end - used) * sizeof(ChunkEntry));
  if (status == MOB_OK) header.high_water.store(end, std::memory_order_relaxed);
  return status;
}

// First fit. A process that dies in here leaves claimed chunks behind, never a broken table: every
// entry is written whole, and chunks without an owner are only lost.
mob_status_t ChunkTable::claim(uint64_t count, uint64_t* first) {
  ChunkTableHeader& header = memory_->chunk_table();
  const LockGuard lock(*peers_, header.lock);
  const uint64_t used = header.high_water.load(std::memory_order_relaxed);
  const uint64_t lowest = header.lowest_free.load(std::memory_order_relaxed);
  uint64_t start = lowest;
  for (uint64_t chunk = start; chunk < used && chunk - start < count; ++chunk) {
    if (entries_[chunk].first.load(std::memory_order_relaxed) != 0) start = chunk + 1;
  }
  mob_status_t status = MOB_OK;
  if (count > count_ || start > count_ - count) {
    status = base::fail(MOB_ERR_MEMORY,
                        "%zu bytes in a row do not fit into what is left of the window of %zu "
                        "bytes; free allocations or raise MOBIUS_WINDOW_BYTES",
                        static_cast<size_t>(count) << kChunkShift,
                        static_cast<size_t>(count_) << kChunkShift);
  } else {
    status = reserve_entries(start + count);
  }
  if (status == MOB_OK) {
    for (uint64_t chunk = start; chunk < start + count; ++chunk) {
      entries_[chunk].first.store(kClaimed, std::memory_order_relaxed);
    }
    if (start == lowest) header.lowest_free.store(start + count, std::memory_order_relaxed);
    *first = start;
  }
  return status;
}

void ChunkTable::set_region(uint64_t first, const Region& region) {
  entries_[first].bytes.store(region.bytes, std::memory_order_relaxed);
  auto& tag = entries_[first].owner_and_generation;
  constexpr uint32_t kLast = UINT32_MAX >> kOwnerBits;
  const uint32_t before = tag.load(std::memory_order_relaxed) >> kOwnerBits;
  const uint32_t generation = before == kLast ? 1 : before + 1;
  // Both pair with find(): a reader that sees the tag sees the bytes, a reader that sees the
  // chunk's region sees the region.
  tag.store(generation << kOwnerBits | static_cast<uint32_t>(region.owner),
            std::memory_order_release);
  const uint64_t end = first + chunks_of(region.bytes);
  for (uint64_t chunk = first; chunk < end; ++chunk) {
    entries_[chunk].first.store(static_cast<uint32_t>(first + 1), std::memory_order_release);
  }
}

void ChunkTable::clear_region(const Region& region) {
  const uint64_t first = region.offset >> kChunkShift;
  for (uint64_t chunk = first; chunk < first + chunks_of(region.bytes); ++chunk) {
    entries_[chunk].first.store(kClaimed, std::memory_order_relaxed);
  }
}

void ChunkTable::release(uint64_t first, uint64_t count, bool forgets_words) {
  ChunkTableHeader& header = memory_->chunk_table();
  const LockGuard lock(*peers_, header.lock);
  for (uint64_t chunk = first; chunk < first + count; ++chunk) {
    if (forgets_words) entries_[chunk].words.clear();
    entries_[chunk].first.store(0, std::memory_order_relaxed);
  }
  const uint64_t lowest = header.lowest_free.load(std::memory_order_relaxed);
  header.lowest_free.store(std::min(lowest, first), std::memory_order_relaxed);
}

}  // namespace mobius::engine
