// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A range of address space for shared memory, so that every process of a host can have it at the
// same place. Reserved without access and without memory.

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

  // Puts `descriptor` from `file_offset` on in the place of the whole reservation, still without
  // access.
  mob_status_t attach(int descriptor, size_t file_offset);

  // Allows, or takes away, access to part of what is attached. Pages that nobody reserved must not
  // be allowed: touching them would make them.
  mob_status_t allow(size_t offset, size_t bytes);
  void deny(size_t offset, size_t bytes);

  uintptr_t base() const { return base_; }
  size_t bytes() const { return bytes_; }

 private:
  uintptr_t base_ = 0;
  size_t bytes_ = 0;
};

}  // namespace mobius::os
