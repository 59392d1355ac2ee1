// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Memory that one process allocates by itself and that its local peers can reach at once: a
// malloc() in shared memory. The engine keeps there what other processes count, lock or read.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "engine/common/range_allocator.h"
#include "engine/segment/window/chunk_table.h"

namespace mobius::engine {

class Segment;

// Small blocks are cut from extents of some megabytes, large ones are regions of their own, of
// which some freed ones are kept for the next blocks of their sizes. The
// books are in private memory, so a stray write into a block cannot damage them. Any thread.
class LocalHeap {
 public:
  explicit LocalHeap(Segment& segment) : segment_(segment) {}
  LocalHeap(const LocalHeap&) = delete;
  LocalHeap& operator=(const LocalHeap&) = delete;

  // The least alignment of blocks, in bytes.
  static constexpr size_t kGrain = 16;

  // `bytes` > 0; `alignment` a power of two up to kChunkBytes. The contents are undefined.
  // Segment::offset_of() gives the block's place in the window.
  mob_status_t allocate(size_t bytes, size_t alignment, void** block);

  // MOB_ERR_HANDLE if `block` is not what allocate() or resize() gave, or was released. `call`
  // names the public function in the text.
  mob_status_t release(const char* call, void* block);

  // Makes a block longer or shorter; `*block` moves where it must, with its contents.
  mob_status_t resize(const char* call, void** block, size_t bytes);

 private:
  using Blocks = std::map<uint64_t, uint64_t>;

  mob_status_t check_size(size_t bytes) const;
  mob_status_t add_extent(size_t bytes);
  mob_status_t add_region(size_t bytes, std::map<uint64_t, Region>* regions, uint64_t* offset);
  mob_status_t allocate_locked(size_t bytes, size_t alignment, uint64_t* offset);
  mob_status_t allocate_large(size_t bytes, uint64_t* offset);
  void release_locked(Blocks::iterator block);
  void reduce_spares(uint64_t bytes);
  mob_status_t find(const char* call, const void* block, Blocks::iterator* found);

  Segment& segment_;
  std::mutex mutex_;                        // guards all below
  RangeAllocator free_;                     // in the extents, by offset in the window
  std::map<uint64_t, Region> extents_;      // by offset
  std::map<uint64_t, Region> large_;        // by offset
  std::multimap<uint64_t, Region> spares_;  // large blocks that were freed, by bytes
  uint64_t spare_bytes_ = 0;                // of all
  Blocks blocks_;                           // offset → bytes, of both kinds
  uint64_t extent_bytes_ = 0;               // of all
};

}  // namespace mobius::engine
