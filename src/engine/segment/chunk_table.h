// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Who owns which chunk of the window: one table for all processes of a host. Finding a part takes
// no lock; claiming and releasing chunks do, and any process may at any time.

#include <cstddef>
#include <cstdint>

#include "engine/common/peers.h"
#include "engine/segment/segment_layout.h"
#include "os/waiter.h"

namespace mobius::engine {

// A process' share of an allocation, as bytes of the window.
struct Region {
  uint64_t offset;
  uint64_t bytes;    // as asked for, not rounded
  mob_rank_t owner;  // host index
  // Differs from that of the part that was here before, or of this one before it grew; never 0.
  uint32_t generation = 0;
};

constexpr uint64_t chunks_of(uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kChunkBytes - 1) >> kChunkShift;
}

class ChunkTable {
 public:
  void open(Peers& peers, const SegmentLayout& memory, size_t chunks);

  // Takes `count` chunks in a row that nobody uses; MOB_ERR_MEMORY when the window has no such
  // room. They belong to no part yet.
  mob_status_t claim(uint64_t count, uint64_t* first);

  // Makes a part of claimed chunks, or a longer one of a part and claimed chunks after it. Fills in
  // the generation by itself.
  void set_region(uint64_t first, const Region& part);

  // Makes a part's chunks claimed ones again: nobody finds it any more.
  void clear_region(const Region& part);

  // Gives chunks back, parts or not. `forgets_words`: no process remembers any more that it may
  // update words there (stripes.h); otherwise they may for good, whatever is there next.
  void release(uint64_t first, uint64_t count, bool forgets_words = false);

  // The part that holds an offset of the window (of any process, also with 0 bytes in it); false if
  // none does. Lock-free.
  bool find(uint64_t offset, Region* part) const {
    const uint64_t chunk = offset >> kChunkShift;
    if (chunk >= count_) return false;
    // Pairs with the release in set_region().
    const uint32_t first = entries_[chunk].first.load(std::memory_order_acquire);
    if (first == 0 || first == kClaimed) return false;
    const ChunkEntry& head = entries_[first - 1];
    part->offset = uint64_t{first - 1} << kChunkShift;
    // Pairs with the release in set_region(): who sees that a part grew sees how long it is.
    const uint32_t tag = head.owner_and_generation.load(std::memory_order_acquire);
    part->bytes = head.bytes.load(std::memory_order_relaxed);
    part->owner = static_cast<mob_rank_t>(tag & ((1u << kOwnerBits) - 1));
    part->generation = tag >> kOwnerBits;
    return true;
  }

  // Of a chunk that is in use.
  AtomicZones& words(uint64_t chunk) const { return entries_[chunk].words; }
  size_t count() const { return count_; }

 private:
  static constexpr uint32_t kClaimed = UINT32_MAX;

  mob_status_t reserve_entries(uint64_t end);

  const SegmentLayout* memory_ = nullptr;
  ChunkEntry* entries_ = nullptr;
  size_t count_ = 0;
  Peers* peers_ = nullptr;
};

}  // namespace mobius::engine
