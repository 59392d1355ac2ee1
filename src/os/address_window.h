// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A range of address space kept free for shared memory, so that every process of a host can map a
// slab at the same place. Reserved without access and without memory.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

namespace mobius::os {

class AddressWindow {
 public:
  AddressWindow() = default;
  AddressWindow(const AddressWindow&) = delete;
  AddressWindow& operator=(const AddressWindow&) = delete;
  ~AddressWindow() { release(); }

  // Reserves `bytes` at exactly `base`; false, with nothing reserved, where that is taken.
  bool reserve_at(uintptr_t base, size_t bytes);

  // Reserves `bytes` at an address of the kernel's choice, aligned to `alignment` (a power of two).
  bool reserve_anywhere(size_t bytes, size_t alignment);

  void release();

  // Maps `descriptor` whole (`bytes` bytes) readable and writable at `offset` in the window.
  mob_status_t map(size_t offset, size_t bytes, int descriptor);

  // Takes the mapping away and reserves its place again.
  void unmap(size_t offset, size_t bytes);

  uintptr_t base() const { return base_; }
  size_t bytes() const { return bytes_; }

 private:
  uintptr_t base_ = 0;
  size_t bytes_ = 0;
};

}  // namespace mobius::os
