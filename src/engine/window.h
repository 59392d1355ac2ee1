// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The window: the address range in which every process of a host maps the job's slabs.
//
// Offsets in the window are the same in all of them. Where the window also starts at one address
// everywhere, a host-mate's address is an address here ("same"); otherwise the difference of the
// two bases translates it ("table"). Both modes differ in base_of() alone.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/settings.h"
#include "job/host_group.h"
#include "os/address_window.h"

namespace mobius::engine {

// Parts of slabs start on multiples of this: one entry of the part map, one huge page.
inline constexpr unsigned kChunkShift = 21;
inline constexpr size_t kChunkBytes = size_t{1} << kChunkShift;

class Window {
 public:
  // Reserves a window of one size in every process of the group, at one address if it can be had.
  // Collective.
  mob_status_t open(job::HostGroup& group, const base::Settings& settings);
  void close();

  bool same_address() const { return same_address_; }
  uintptr_t base() const { return memory_.base(); }
  size_t bytes() const { return memory_.bytes(); }
  uintptr_t base_of(mob_rank_t host_index) const { return bases_[static_cast<size_t>(host_index)]; }
  os::AddressWindow& memory() { return memory_; }

 private:
  mob_status_t agree_on_size(job::HostGroup& group, size_t wanted, size_t* agreed);
  bool try_same_address(job::HostGroup& group, size_t size);

  os::AddressWindow memory_;
  std::vector<uintptr_t> bases_;
  bool same_address_ = false;
};

}  // namespace mobius::engine
