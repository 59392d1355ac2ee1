// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The window: the address range in which every process of a host has the memory that users share.
//
// It is one mapping of the host's segment. A process opens (makes accessible) a region when it
// first uses it; memory that nobody allocated stays inaccessible, so a stray pointer still faults.
// Offsets in the window are the same in all processes. Where the window also starts at one address
// everywhere, a local peer's address is an address here ("same"); otherwise the difference of the
// two bases translates it ("table"). Both modes differ in base_of() alone.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/settings.h"
#include "engine/segment/window/chunk_table.h"
#include "engine/segment/window/open_chunks.h"
#include "job/host_group.h"
#include "os/file/held_descriptor.h"
#include "os/memory/address_window.h"

namespace mobius::engine {

class Window {
 public:
  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { close(); }

  // Maps a window of one size in every process of the group, at one address if it can be had.
  // Collective.
  mob_status_t open(job::HostGroup& group, const base::Settings& settings);
  // As open(), for ranks that are threads of one process and use one Window: only the first calls
  // it.
  mob_status_t open_for_threads(const job::HostGroup& group, const base::Settings& settings);
  void close();

  bool same_address() const { return same_address_; }
  uintptr_t base() const { return memory_.base(); }
  size_t bytes() const { return memory_.bytes(); }
  uintptr_t base_of(mob_rank_t host_index) const {
    return same_address_ ? memory_.base()
                         : bases_[static_cast<size_t>(host_index)].load(std::memory_order_relaxed);
  }

  // Whether this process has opened the region in its current length.
  bool is_open(const Region& region) const {
    return opened_[region.offset >> kChunkShift].load(std::memory_order_relaxed) ==
           region.generation;
  }
  // Lets this process access a region, whatever its chunks were used for before. Any thread.
  mob_status_t open_region(const Region& region);

  // Opens or closes whole chunks to this process. Closed chunks stay accessible where closing them
  // would take more mappings than a process should have (open_chunks.h). Any thread.
  mob_status_t allow(uint64_t offset, uint64_t chunks);
  void deny(uint64_t offset, uint64_t chunks);

 private:
  mob_status_t reserve_first(job::HostGroup& group, const base::Settings& settings);
  mob_status_t reserve_later(job::HostGroup& group);
  mob_status_t agree_on_size(job::HostGroup& group, size_t wanted, size_t* agreed);
  mob_status_t try_same_address(job::HostGroup& group, size_t size, size_t place);
  size_t claim_place(const job::HostGroup& group);
  mob_status_t attach(int segment);
  mob_status_t allow_locked(uint64_t offset, uint64_t chunks);

  os::AddressWindow memory_;
  const std::atomic<uint64_t>* bases_ = nullptr;  // of all processes of the host, in the segment
  bool same_address_ = false;
  os::HeldDescriptor claim_;  // says to other jobs where this one has its windows
  std::mutex mutex_;          // guards changes of access
  OpenChunks open_chunks_;
  bool said_many_mappings_ = false;
  // One per chunk: the generation of the opened region that starts there. Takes no memory until
  // used.
  std::atomic<uint32_t>* opened_ = nullptr;
};

}  // namespace mobius::engine
