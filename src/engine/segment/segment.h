// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The memory that all processes of a host share, as one process sees it: the window, the table of
// its chunks, and a block for each process. Translates addresses of local peers to addresses here.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/common/peers.h"
#include "engine/segment/locks/accumulate_locks.h"
#include "engine/segment/segment_layout.h"
#include "engine/segment/window/chunk_table.h"
#include "engine/segment/window/translation_cache.h"
#include "engine/segment/window/window.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// Finds memory that its owner exposed by moving its pages into the segment (rma/exposed/remaps.h),
// for addresses that are not in the window themselves. Each returns a pointer here, or null if the
// bytes do not lie in one piece of such memory. Any thread.
class RemappedMemory {
 public:
  RemappedMemory() = default;
  virtual ~RemappedMemory() = default;
  RemappedMemory(const RemappedMemory&) = delete;
  RemappedMemory& operator=(const RemappedMemory&) = delete;

  virtual void* find(mob_rank_t rank, uintptr_t remote, size_t bytes) = 0;
  // The same for a caller that updates a word by atomic instructions.
  virtual void* find_word(mob_rank_t rank, uintptr_t remote, size_t bytes) = 0;
  // The same, but always an address in the window, which stays valid when the owner takes the
  // memory back.
  virtual void* find_in_window(mob_rank_t rank, uintptr_t remote, size_t bytes) = 0;
};

class Segment {
 public:
  Segment(Peers& peers, RemappedMemory& remapped) : peers_(peers), remapped_(remapped) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Takes over what this process has mapped; before anything else is called.
  void adopt(std::shared_ptr<Window> window, const SegmentLayout& layout);
  void open_chunks();
  // The inlined operations of the public header may use what reach() finds from now on, or not any
  // more: a hook must see every operation.
  void let_inlined(bool may) { lets_inlined_ = may && window_->same_address(); }
  // Remapped memory of other processes is not looked up from now on: it is reached as other exposed
  // memory is. What is found there is kept by number (rma/exposed/remap_cache.h), and the numbers
  // of a guest are not the program's.
  void leave_remapped() { finds_remapped_ = false; }
  void close();

  Peers& peers() const { return peers_; }
  Window& window() const { return *window_; }
  ChunkTable& chunks() { return chunks_; }
  const ChunkTable& chunks() const { return chunks_; }
  AccumulateLocks& accumulate_locks() { return accumulate_locks_; }
  ProcessBlock& process(mob_rank_t host_index) const { return layout_.process(host_index); }
  ProcessBlock& own_process() const { return process(peers_.host().index()); }
  // Of a process of this host.
  ProcessBlock::Doorbell& doorbell(mob_rank_t rank) const {
    return process(peers_.host_index(rank)).doorbell;
  }

  // The address of an offset of the window in a process of this host.
  uintptr_t address_in(mob_rank_t host_index, uint64_t offset) const {
    return window_->base_of(host_index) + offset;
  }
  void* local_address(uint64_t offset) const {
    return reinterpret_cast<void*>(window_->base() + offset);
  }
  // The offset in the window of an address in this process.
  uint64_t offset_of(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - window_->base();
  }

  // A pointer here to `bytes` bytes at `remote` in `rank` (0 <= rank < size()). Null if the rank is
  // on another host, or if the bytes do not lie in one region, or in one piece of memory that its
  // owner moved into the segment. Also readies the inlined path for that region. Any thread.
  void* reach(mob_rank_t rank, const void* remote, size_t bytes) {
    Region region{};
    void* here = find_here(rank, reinterpret_cast<uintptr_t>(remote), bytes, &region);
    if (here == nullptr) [[unlikely]] {
      return finds_remapped_ ? remapped_.find(rank, reinterpret_cast<uintptr_t>(remote), bytes)
                             : nullptr;
    }
    if (lets_inlined_) {
      target_remember(entry_of(rank), TargetUse::kBytes, window_->base() + region.offset,
                      target_limits(region.bytes));
    }
    return here;
  }

  // Whether the bytes lie in the region that inlined operations on the rank reach now, so that
  // their address here is `remote`. Any thread.
  bool is_at_hand(mob_rank_t rank, const void* remote, size_t bytes) const {
    return target_covers(entry_of(rank), remote, bytes);
  }

  // As reach(), for a caller that updates words by atomic instructions.
  void* reach_word(mob_rank_t rank, const void* remote, size_t bytes) {
    Region region{};
    void* here = find_here(rank, reinterpret_cast<uintptr_t>(remote), bytes, &region);
    if (here == nullptr) [[unlikely]] {
      return finds_remapped_ ? remapped_.find_word(rank, reinterpret_cast<uintptr_t>(remote), bytes)
                             : nullptr;
    }
    const bool is_new =
        accumulate_locks_.admit_word(region.owner, reinterpret_cast<uintptr_t>(remote));
    if (lets_inlined_ && (is_new || target_is_due(entry_of(rank), TargetUse::kWords))) {
      const uint64_t offset = reinterpret_cast<uintptr_t>(here) - window_->base();
      const AccumulateLocks::Zone zone = accumulate_locks_.admitted_around(region, offset);
      target_remember(entry_of(rank), TargetUse::kWords, window_->base() + zone.start,
                      target_limits(zone.bytes));
    }
    return here;
  }

  // As reach(), for memory of a region that programs do not reach by inlined operations.
  void* find_here(mob_rank_t rank, uintptr_t remote, size_t bytes) {
    Region region{};
    return find_here(rank, remote, bytes, &region);
  }

  // As reach(), for a pointer that the program keeps: what mob_lock() is given has to lie in the
  // window, and a view of moved memory ends when its owner withdraws it.
  void* pointer_to(mob_rank_t rank, const void* remote) {
    const auto address = reinterpret_cast<uintptr_t>(remote);
    void* here = find_here(rank, address, 0);
    if (here != nullptr || !finds_remapped_) return here;
    return remapped_.find_in_window(rank, address, 0);
  }

  // The error for what reach() refused. `call` names the public function in the text.
  [[gnu::cold]] mob_status_t explain_unreachable(const char* call, mob_rank_t rank,
                                                 const void* remote, size_t bytes) const;

  // Reserves pages of the window. MOB_ERR_MEMORY where the host, or a control group of this
  // process, has less than that left: large requests are checked first, one process of the host at
  // a time, because the kernel may rather end processes than refuse.
  mob_status_t reserve_memory(uint64_t offset, size_t bytes);
  // The check alone, for requests that others have to agree on.
  static mob_status_t check_available(uint64_t bytes);
  // Gives pages of the window back.
  void release_memory(uint64_t offset, size_t bytes);

  // Closes chunks of the window to this process. Also removes the entries of the inlined path
  // for any rank that ever had them, which would reach closed memory when they are used again.
  void close_chunks(uint64_t offset, uint64_t chunks);

 private:
  void* find_here(mob_rank_t rank, uintptr_t remote, size_t bytes, Region* region) {
    const mob_rank_t index = peers_.host_index(rank);
    if (index < 0) return nullptr;
    const uint64_t offset = remote - window_->base_of(index);
    if (!chunks_.find(offset, region) || region->owner != index) return nullptr;
    const uint64_t within = offset - region->offset;
    if (within > region->bytes || bytes > region->bytes - within) return nullptr;
    if (!window_->is_open(*region) && window_->open_region(*region) != MOB_OK) [[unlikely]] {
      return nullptr;
    }
    return reinterpret_cast<void*>(window_->base() + offset);
  }

  // The number whose entry the inlined operations look at. Processes that the program does not name
  // have one that it never uses.
  mob_rank_t entry_of(mob_rank_t rank) const {
    const mob_rank_t number = peers_.public_number(rank);
    return number >= 0 ? number : kUnnamed;
  }
  static constexpr mob_rank_t kUnnamed = (1 << MOB_RANK_INDEX_BITS_) - 1;
  static_assert(kUnnamed >= job::kMostLocalPeers);

  Peers& peers_;
  RemappedMemory& remapped_;
  std::shared_ptr<Window> window_;
  SegmentLayout layout_;
  bool lets_inlined_ = false;
  bool finds_remapped_ = true;
  ChunkTable chunks_;
  AccumulateLocks accumulate_locks_{*this};
};

}  // namespace mobius::engine
