// SPDX-License-Identifier: BSD-3-Clause
#include "engine/allocation/symmetric_heap.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/status.h"
#include "engine/allocation/complete_all.h"
#include "engine/segment/segment.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;

constexpr size_t kNoBlock = SIZE_MAX;

// An overflow yields a size larger than any window.
constexpr size_t rounded(size_t bytes, size_t unit) {
  return bytes > SIZE_MAX - unit ? SIZE_MAX & ~(unit - 1) : (bytes + unit - 1) & ~(unit - 1);
}

}  // namespace

// A member's request. The call fails unless all members ask for the same.
struct SymmetricHeap::Request {
  size_t block;  // offset, kNoBlock for none
  size_t bytes;
  size_t alignment;  // also tells the kinds of call apart: 0 frees
};

mob_status_t SymmetricHeap::make(Allocations& allocations, const char* call, Team& team,
                                 size_t initial, size_t maximum, Allocations::Fault fault,
                                 std::unique_ptr<SymmetricHeap>* heap) {
  struct Sizes {
    size_t initial;
    size_t maximum;
    bool operator==(const Sizes&) const = default;
  };
  std::vector<Sizes> all;
  if (const mob_status_t status = team.exchange(Sizes{initial, maximum}, &all)) return status;
  if (std::ranges::adjacent_find(all, std::ranges::not_equal_to()) != all.end()) {
    return fail(MOB_ERR_ARGUMENT, "%s: the members pass different sizes; each passes the same",
                call);
  }
  if (maximum == 0 || initial > maximum) {
    return fail(
        MOB_ERR_ARGUMENT,
        "%s: the initial size is %zu bytes and the maximum %zu; the maximum must be at least 1 "
        "and at least the initial size",
        call, initial, maximum);
  }
  if (maximum > allocations.services().segment.window().bytes()) {
    return fail(MOB_ERR_RANGE,
                "%s: a maximum of %zu bytes is more than the window of %zu bytes; see "
                "MOBIUS_WINDOW_BYTES",
                call, maximum, allocations.services().segment.window().bytes());
  }
  const size_t most = rounded(maximum, kChunkBytes);
  const size_t bytes = rounded(std::max<size_t>(initial, 1), kChunkBytes);
  uint64_t memory = 0;
  const mob_status_t status = allocations.allocate(call, team, bytes, most, fault, &memory);
  if (status == MOB_OK) *heap = std::make_unique<SymmetricHeap>(allocations, memory, bytes, most);
  return status;
}

SymmetricHeap::SymmetricHeap(Allocations& allocations, uint64_t memory, size_t bytes,
                             size_t maximum)
    : allocations_(allocations),
      segment_(allocations.services().segment),
      memory_(memory),
      allocation_(*allocations.find(memory)),
      maximum_(maximum),
      bytes_(bytes),
      free_(bytes) {}

mob_status_t SymmetricHeap::destroy(const char* call) {
  return allocations_.release(call, memory_);
}

bool SymmetricHeap::is_alive() const { return allocations_.find(memory_) != nullptr; }

uintptr_t SymmetricHeap::address_in(mob_rank_t team_rank) const {
  if (!allocation_.members.empty()) {
    return allocation_.members[static_cast<size_t>(team_rank)].address;
  }
  const mob_rank_t rank = team().map().world_rank(team_rank);
  return segment_.address_in(segment_.peers().host_index(rank),
                             allocation_.region_offset(team_rank));
}

void* SymmetricHeap::address(size_t offset) const {
  return segment_.local_address(own_offset() + offset);
}

mob_status_t SymmetricHeap::find(const char* call, const void* block, size_t* offset) const {
  *offset = segment_.offset_of(block) - own_offset();
  if (blocks_.contains(*offset)) return MOB_OK;
  return fail(
      MOB_ERR_HANDLE,
      "%s: %p is not a live block of the caller's part of this heap (freed before, or never "
      "allocated)",
      call, block);
}

// A barrier. Keeps a member from changing a block that another still uses.
mob_status_t SymmetricHeap::agree_on(const char* call, mob_status_t mine, const Request& request) {
  struct Entry {
    mob_status_t status;
    Request request;
  };
  std::vector<Entry> all;
  if (const mob_status_t status = team().exchange(Entry{mine, request}, &all)) return status;
  if (mine != MOB_OK) return mine;
  for (size_t i = 0; i < all.size(); ++i) {
    const mob_rank_t rank = team().map().world_rank(static_cast<mob_rank_t>(i));
    if (all[i].status != MOB_OK) {
      return fail(MOB_ERR_PEER, "%s failed here because it failed at rank %d with %s", call, rank,
                  mob_status_name(all[i].status));
    }
    const Request& theirs = all[i].request;
    const Request& first = all[0].request;
    if (theirs.block != first.block || theirs.bytes != first.bytes ||
        theirs.alignment != first.alignment) {
      return fail(MOB_ERR_ARGUMENT,
                  "%s: ranks %d and %d call it differently (block, size or alignment); all members "
                  "of a heap make the same calls in the same order",
                  call, team().map().world_rank(0), rank);
    }
  }
  return MOB_OK;
}

// Completes what the calling thread started, so that it cannot reach a later block in the same
// memory. A transfer's error becomes the call's, and the call then changes nothing.
mob_status_t SymmetricHeap::complete(const char* call, mob_status_t argument) {
  const mob_status_t completed = complete_all(allocations_.services(), call);
  return argument != MOB_OK ? argument : completed;
}

mob_status_t SymmetricHeap::allocate(const char* call, mob_status_t argument, size_t bytes,
                                     size_t alignment, void** block) {
  alignment = std::max(alignment, kGrain);
  const Request request{kNoBlock, bytes, alignment};
  if (const mob_status_t status = agree_on(call, argument, request)) return status;
  size_t offset = 0;
  if (bytes != 0) {
    if (const mob_status_t status = take(call, bytes, alignment, &offset)) return status;
  }
  *block = bytes == 0 ? nullptr : address(offset);
  return MOB_OK;
}

mob_status_t SymmetricHeap::allocate_zeros(const char* call, mob_status_t argument, size_t bytes,
                                           void** block) {
  if (const mob_status_t status = allocate(call, argument, bytes, 0, block)) return status;
  if (bytes == 0) return MOB_OK;
  std::memset(*block, 0, bytes);
  return team().barrier();
}

mob_status_t SymmetricHeap::take(const char* call, size_t bytes, size_t alignment, size_t* offset) {
  const size_t length = rounded(bytes, kGrain);
  while (!free_.allocate(length, alignment, offset)) {
    // Includes room for any place at which the new memory may align the block.
    if (bytes_ == maximum_ || length > maximum_) {
      return fail(
          MOB_ERR_MEMORY,
          "%s: no %zu bytes in a row are free in the heap, of whose %zu bytes %zu are used; "
          "it may not grow beyond %zu",
          call, bytes, bytes_, used_, maximum_);
    }
    if (const mob_status_t status = grow(call, length)) return status;
  }
  blocks_.emplace(*offset, length);
  used_ += length;
  return MOB_OK;
}

// Grows by half, so that a heap that grows block by block does so rarely, and at least by `bytes`.
mob_status_t SymmetricHeap::grow(const char* call, size_t bytes) {
  const size_t wanted = bytes_ + std::max(bytes, rounded(bytes_ / 2, kChunkBytes));
  const size_t new_bytes = std::min(maximum_, rounded(wanted, kChunkBytes));
  const mob_status_t status = allocations_.grow(call, allocation_, bytes_, new_bytes);
  if (status != MOB_OK) return status;
  free_.add(bytes_, new_bytes - bytes_);
  bytes_ = new_bytes;
  return MOB_OK;
}

void SymmetricHeap::give_back(size_t offset) {
  const auto found = blocks_.find(offset);
  free_.release(offset, found->second);
  used_ -= found->second;
  blocks_.erase(found);
}

mob_status_t SymmetricHeap::release(const char* call, void* block) {
  size_t offset = kNoBlock;
  const mob_status_t argument = block == nullptr ? MOB_OK : find(call, block, &offset);
  const mob_status_t mine = complete(call, argument);
  if (const mob_status_t status = agree_on(call, mine, {offset, 0, 0})) return status;
  if (offset != kNoBlock) give_back(offset);
  return MOB_OK;
}

mob_status_t SymmetricHeap::resize(const char* call, mob_status_t argument, void* block,
                                   size_t bytes, void** result) {
  size_t old = kNoBlock;
  if (argument == MOB_OK && block != nullptr) argument = find(call, block, &old);
  const mob_status_t mine = complete(call, argument);
  if (const mob_status_t status = agree_on(call, mine, {old, bytes, kGrain})) return status;
  const size_t old_bytes = old == kNoBlock ? 0 : blocks_[old];
  const size_t length = rounded(bytes, kGrain);
  if (bytes != 0 && length <= old_bytes) {
    if (length < old_bytes) free_.shorten(old + length, old_bytes - length);
    blocks_[old] = length;
    used_ -= old_bytes - length;
    *result = block;
    return MOB_OK;
  }
  void* moved = nullptr;
  if (bytes != 0) {
    size_t offset = 0;
    if (const mob_status_t status = take(call, bytes, kGrain, &offset)) return status;
    moved = address(offset);
  }
  mob_status_t status = MOB_OK;
  if (old != kNoBlock) {
    if (moved != nullptr) {
      transport::copy(moved, block, old_bytes);
      // No member writes to the new block before the old contents are there.
      status = team().barrier();
    }
    give_back(old);
  }
  *result = moved;
  return status;
}

}  // namespace mobius::engine
