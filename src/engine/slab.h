// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Slabs: collective allocations. One memfd per slab holds the parts of all host-mates; each process
// maps it whole, at the same offset of its window.

#include <mobius/memory.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "engine/range_allocator.h"
#include "engine/targets.h"
#include "engine/window.h"
#include "job/host_group.h"

namespace mobius::engine {

// One process' share of a slab. Immutable while the slab lives.
struct Part {
  Part(uint64_t window_offset, uint64_t size, mob_rank_t owner)
      : offset(window_offset), bytes(size), host_index(owner), limits(target_limits(size)) {}

  uint64_t offset;  // in the window
  uint64_t bytes;   // as asked for, not rounded
  mob_rank_t host_index;
  TargetLimits limits;  // what an inlined operation may reach
};

struct Slab {
  size_t offset = 0;  // in the window
  size_t bytes = 0;   // of address space, all parts with the gaps between them
  std::vector<Part> parts;
};

// Finds the part that holds an offset of the window, without a lock: one entry per chunk. The table
// is address space until a chunk is used.
class PartMap {
 public:
  PartMap() = default;
  PartMap(const PartMap&) = delete;
  PartMap& operator=(const PartMap&) = delete;
  ~PartMap() { close(); }

  mob_status_t open(size_t window_bytes);
  void close();
  void set(const Part& part, const Part* value);

  const Part* find(uint64_t offset) const {
    if (offset >> kChunkShift >= chunks_) return nullptr;
    // Pairs with the release in set(): the part was written before.
    return entries_[offset >> kChunkShift].load(std::memory_order_acquire);
  }

 private:
  std::atomic<const Part*>* entries_ = nullptr;
  size_t chunks_ = 0;
};

// The live slabs of a process. allocate() and release() are collective; the rest is safe from any
// thread at any time.
class Slabs {
 public:
  mob_status_t open(job::HostGroup& group, Window& window);
  void close();

  mob_status_t allocate(size_t bytes, bool valid_call, Slab** slab);
  mob_status_t release(Slab* slab);

  // Whether `slab` is live: handles come from callers and may be anything.
  bool is_live(const Slab* slab) const;
  const Part* find(uint64_t offset) const { return map_.find(offset); }

  template <typename Visit>
  void for_each(Visit visit) const {
    const std::shared_lock lock(mutex_);
    for (const auto& slab : live_) visit(*slab);
  }

 private:
  mob_status_t check_room(const std::vector<size_t>& sizes, size_t available, size_t* total) const;
  mob_status_t back_with_memory(Slab& slab);
  void unmap(const Slab& slab);

  job::HostGroup* group_ = nullptr;
  Window* window_ = nullptr;
  RangeAllocator ranges_;
  PartMap map_;
  mutable std::shared_mutex mutex_;  // guards live_
  std::vector<std::unique_ptr<Slab>> live_;
};

}  // namespace mobius::engine
