// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Symmetric heaps (include/mobius/heap.h). A heap is an allocation whose parts grow, and a record
// of its blocks. Every member keeps the same record because all make the same calls.

#include <mobius/heap.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/allocation/allocations.h"
#include "engine/common/range_allocator.h"

namespace mobius::engine {

// All functions but the accessors are collective over the team. `call` names the public function in
// error texts.
class SymmetricHeap {
 public:
  static constexpr size_t kGrain = 16;  // the least alignment of blocks

  static mob_status_t make(Allocations& allocations, const char* call, Team& team, size_t initial,
                           size_t maximum, Allocations::Fault fault,
                           std::unique_ptr<SymmetricHeap>* heap);
  SymmetricHeap(Allocations& allocations, uint64_t memory, size_t bytes, size_t maximum);
  SymmetricHeap(const SymmetricHeap&) = delete;
  SymmetricHeap& operator=(const SymmetricHeap&) = delete;

  // `argument` is the error that the caller found in its own arguments, or MOB_OK. `*block` is null
  // for 0 bytes.
  mob_status_t allocate(const char* call, mob_status_t argument, size_t bytes, size_t alignment,
                        void** block);
  // The same, and the block is zero at every member.
  mob_status_t allocate_zeros(const char* call, mob_status_t argument, size_t bytes, void** block);
  mob_status_t resize(const char* call, mob_status_t argument, void* block, size_t bytes,
                      void** result);
  mob_status_t release(const char* call, void* block);
  // Afterwards the object is unusable, unless the call failed because the members named different
  // heaps.
  mob_status_t destroy(const char* call);
  bool is_alive() const;

  Team& team() const { return *allocation_.team; }
  uint64_t stride() const { return allocation_.stride; }
  size_t maximum() const { return maximum_; }
  size_t bytes() const { return bytes_; }
  size_t used() const { return used_; }

  // The offset of the own part in the window, and the address of a member's part.
  uint64_t own_offset() const { return allocation_.region_offset(team().local_team().rank()); }
  uintptr_t address_in(mob_rank_t team_rank) const;
  // Whether all parts are at equal distances.
  bool has_stride() const { return allocation_.members.empty(); }

 private:
  struct Request;

  mob_status_t agree_on(const char* call, mob_status_t mine, const Request& request);
  mob_status_t complete(const char* call, mob_status_t argument);
  mob_status_t take(const char* call, size_t bytes, size_t alignment, size_t* offset);
  mob_status_t grow(const char* call, size_t bytes);
  void* address(size_t offset) const;
  mob_status_t find(const char* call, const void* block, size_t* offset) const;
  void give_back(size_t offset);

  Allocations& allocations_;
  Segment& segment_;
  const uint64_t memory_;         // handle of the allocation
  const Allocation& allocation_;  // lives until destroy()
  const size_t maximum_;
  size_t bytes_;
  size_t used_ = 0;
  RangeAllocator free_;              // by offset in the part
  std::map<size_t, size_t> blocks_;  // offset → bytes
};

}  // namespace mobius::engine
