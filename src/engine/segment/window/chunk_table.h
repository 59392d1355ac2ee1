// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The owner of each chunk of the window: one table for all processes of a host. Finding a region
// takes no lock. Claiming and releasing chunks take one; any process may do so at any time.

#include <cstddef>
#include <cstdint>

#include "engine/common/peers.h"
#include "engine/segment/segment_layout.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// A process' share of an allocation, as bytes of the window.
struct Region {
  uint64_t offset;
  uint64_t bytes;    // as asked for, not rounded
  mob_rank_t owner;  // host index
  // Differs from that of the region that was here before, and changes when the region grows; never
  // 0.
  uint32_t generation = 0;
};

constexpr uint64_t chunks_of(uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kChunkBytes - 1) >> kChunkShift;
}

class ChunkTable {
 public:
  void open(Peers& peers, const SegmentLayout& memory, size_t chunks);

  // Takes `count` unused chunks in a row; MOB_ERR_MEMORY when the window has no such room. They
  // belong to no region yet.
  mob_status_t claim(uint64_t count, uint64_t* first);

  // Makes a region of claimed chunks, or extends a region by claimed chunks after it. Fills in the
  // generation.
  void set_region(uint64_t first, const Region& region);

  // Makes a region's chunks claimed ones again: nobody finds the region any more.
  void clear_region(const Region& region);

  // Gives chunks back, whether they are a region or not. With `forgets_words` no process remembers
  // any more that it may update words there (accumulate_locks.h); otherwise words there stay
  // admitted for whatever comes next.
  void release(uint64_t first, uint64_t count, bool forgets_words = false);

  // Finds the region that holds an offset of the window (of any process, also a region of 0 bytes);
  // false if there is none. Lock-free.
  bool find(uint64_t offset, Region* region) const {
    const uint64_t chunk = offset >> kChunkShift;
    if (chunk >= count_) return false;
    // Pairs with the release in set_region().
    const uint32_t first = entries_[chunk].first.load(std::memory_order_acquire);
    if (first == 0 || first == kClaimed) return false;
    const ChunkEntry& head = entries_[first - 1];
    region->offset = uint64_t{first - 1} << kChunkShift;
    // Pairs with the release in set_region(): a reader that sees that a region grew sees its new
    // length.
    const uint32_t tag = head.owner_and_generation.load(std::memory_order_acquire);
    region->bytes = head.bytes.load(std::memory_order_relaxed);
    region->owner = static_cast<mob_rank_t>(tag & ((1u << kOwnerBits) - 1));
    region->generation = tag >> kOwnerBits;
    return true;
  }

  // Of a chunk that is in use.
  AtomicZones& words(uint64_t chunk) const { return entries_[chunk].words; }
  size_t count() const { return count_; }
  // Chunks from here on were never used.
  uint64_t used() const {
    return memory_->chunk_table().high_water.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kClaimed = UINT32_MAX;

  mob_status_t reserve_entries(uint64_t end);

  const SegmentLayout* memory_ = nullptr;
  ChunkEntry* entries_ = nullptr;
  size_t count_ = 0;
  Peers* peers_ = nullptr;
};

}  // namespace mobius::engine
