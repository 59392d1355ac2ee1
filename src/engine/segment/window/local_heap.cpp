// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/local_heap.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/status.h"
#include "engine/segment/segment.h"
#include "engine/segment/window/region.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;

constexpr uint64_t kLeastExtent = uint64_t{4} << 20;
constexpr uint64_t kMostExtent = uint64_t{64} << 20;
// Blocks of at least so many bytes are regions of their own: their memory goes back to the system
// when freed. Up to kMostSpare bytes are kept, since programs allocate and free a buffer again and
// again, and the kernel gives and takes its memory page by page.
constexpr uint64_t kLarge = uint64_t{1} << 20;
constexpr uint64_t kMostSpare = uint64_t{32} << 20;
// At the end of an extent, in no block: keeps free pieces of two extents from becoming one.
constexpr uint64_t kFence = LocalHeap::kGrain;

constexpr uint64_t rounded(uint64_t bytes) {
  return (bytes + LocalHeap::kGrain - 1) & ~(LocalHeap::kGrain - 1);
}

}  // namespace

mob_status_t LocalHeap::check_size(size_t bytes) const {
  const size_t window = segment_.window().bytes();
  if (bytes <= window) return MOB_OK;
  return fail(MOB_ERR_MEMORY,
              "a block of %zu bytes is larger than the window of %zu bytes; see "
              "MOBIUS_WINDOW_BYTES",
              bytes, window);
}

mob_status_t LocalHeap::allocate(size_t bytes, size_t alignment, void** block) {
  if (const mob_status_t status = check_size(bytes)) return status;
  const std::lock_guard lock(mutex_);
  uint64_t offset = 0;
  const mob_status_t status = allocate_locked(rounded(bytes), std::max(alignment, kGrain), &offset);
  if (status == MOB_OK) *block = segment_.local_address(offset);
  return status;
}

mob_status_t LocalHeap::allocate_locked(size_t bytes, size_t alignment, uint64_t* offset) {
  // The entry for the books is allocated first, so that nothing can fail once the block is taken.
  Blocks entry;
  entry.emplace(0, bytes);
  auto block = entry.extract(entry.begin());
  if (bytes >= kLarge || alignment >= kLarge) {
    if (const mob_status_t status = allocate_large(bytes, offset)) return status;
  } else if (!free_.allocate(bytes, alignment, offset)) {
    // Extents grow, so that there are few; a new extent is empty and has room for any small block.
    const mob_status_t status =
        add_extent(std::clamp(extent_bytes_ / 2, kLeastExtent, kMostExtent));
    if (status != MOB_OK) return status;
    free_.allocate(bytes, alignment, offset);
  }
  block.key() = *offset;
  blocks_.insert(std::move(block));
  return MOB_OK;
}

mob_status_t LocalHeap::allocate_large(size_t bytes, uint64_t* offset) {
  const auto spare = spares_.find(bytes);
  if (spare == spares_.end()) return add_region(bytes, &large_, offset);
  auto entry = spares_.extract(spare);
  spare_bytes_ -= bytes;
  *offset = entry.key() = entry.mapped().offset;
  large_.insert(std::move(entry));
  return MOB_OK;
}

// Gives memory of spares back, until at most `bytes` are left.
void LocalHeap::reduce_spares(uint64_t bytes) {
  while (spare_bytes_ > bytes) {
    const auto spare = spares_.begin();
    drop_region(segment_, spare->second);
    spare_bytes_ -= spare->first;
    spares_.erase(spare);
  }
}

mob_status_t LocalHeap::add_region(size_t bytes, std::map<uint64_t, Region>* regions,
                                   uint64_t* offset) {
  std::map<uint64_t, Region> made;
  Region& region = made[0];
  mob_status_t status = make_region(segment_, bytes, RegionMemory::kReserved, &region);
  if (status != MOB_OK && !spares_.empty()) {
    reduce_spares(0);
    status = make_region(segment_, bytes, RegionMemory::kReserved, &region);
  }
  if (status != MOB_OK) return status;
  auto entry = made.extract(made.begin());
  *offset = entry.key() = entry.mapped().offset;
  regions->insert(std::move(entry));
  return MOB_OK;
}

mob_status_t LocalHeap::add_extent(size_t bytes) {
  uint64_t offset = 0;
  if (const mob_status_t status = add_region(bytes, &extents_, &offset)) return status;
  try {
    free_.add(offset, bytes - kFence);
  } catch (const std::bad_alloc&) {
    const auto extent = extents_.find(offset);
    drop_region(segment_, extent->second);
    extents_.erase(extent);
    throw;
  }
  extent_bytes_ += bytes;
  return MOB_OK;
}

mob_status_t LocalHeap::find(const char* call, const void* block, Blocks::iterator* found) {
  *found = blocks_.find(segment_.offset_of(block));
  if (*found != blocks_.end()) return MOB_OK;
  return fail(MOB_ERR_HANDLE,
              "%s: %p is not a live block of this process' local memory (freed before, or never "
              "allocated)",
              call, block);
}

mob_status_t LocalHeap::release(const char* call, void* block) {
  const std::lock_guard lock(mutex_);
  Blocks::iterator found;
  if (const mob_status_t status = find(call, block, &found)) return status;
  release_locked(found);
  return MOB_OK;
}

void LocalHeap::release_locked(Blocks::iterator block) {
  const auto [offset, bytes] = *block;
  blocks_.erase(block);
  if (const auto large = large_.find(offset); large != large_.end()) {
    auto entry = large_.extract(large);
    if (bytes > kMostSpare) {
      drop_region(segment_, entry.mapped());
      return;
    }
    reduce_spares(kMostSpare - bytes);
    entry.key() = bytes;
    spares_.insert(std::move(entry));
    spare_bytes_ += bytes;
    return;
  }
  const Range piece = free_.release(offset, bytes);
  const auto extent = extents_.find(piece.offset);
  // The last extent stays, for programs that allocate and free one block again and again.
  if (extent != extents_.end() && piece.bytes == extent->second.bytes - kFence &&
      extents_.size() > 1) {
    free_.remove(piece);
    extent_bytes_ -= extent->second.bytes;
    drop_region(segment_, extent->second);
    extents_.erase(extent);
  }
}

mob_status_t LocalHeap::resize(const char* call, void** block, size_t bytes) {
  if (const mob_status_t status = check_size(bytes)) return status;
  const std::lock_guard lock(mutex_);
  Blocks::iterator found;
  if (const mob_status_t status = find(call, *block, &found)) return status;
  const auto [old_offset, old_bytes] = *found;
  const uint64_t new_bytes = rounded(bytes);
  if (new_bytes == old_bytes) return MOB_OK;
  if (new_bytes < old_bytes && !large_.contains(old_offset)) {
    found->second = new_bytes;
    free_.shorten(old_offset + new_bytes, old_bytes - new_bytes);
    return MOB_OK;
  }
  uint64_t offset = 0;
  if (const mob_status_t status = allocate_locked(new_bytes, kGrain, &offset)) return status;
  void* moved = segment_.local_address(offset);
  transport::copy(moved, *block, std::min(old_bytes, new_bytes));
  release_locked(found);
  *block = moved;
  return MOB_OK;
}

}  // namespace mobius::engine
