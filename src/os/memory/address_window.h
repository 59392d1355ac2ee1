// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A range of address space for shared memory, reserved without access and without memory, so that
// every process of a host can have it at the same address.

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

  // Reserves `bytes` at exactly `base`. Returns false, with nothing reserved, if the range is in
  // use.
  bool reserve_at(uintptr_t base, size_t bytes);

  // Reserves `bytes` at an address that the kernel chooses, aligned to `alignment` (a power of
  // two).
  bool reserve_anywhere(size_t bytes, size_t alignment);

  void release();

  // Maps `descriptor` from `file_offset` on over the whole reservation, still without access.
  mob_status_t attach(int descriptor, size_t file_offset);

  // Allows, or removes, access to a part of the attached range. Never allow pages that were not
  // reserved: touching them would allocate them.
  mob_status_t allow(size_t offset, size_t bytes);
  void deny(size_t offset, size_t bytes);

  uintptr_t base() const { return base_; }
  size_t bytes() const { return bytes_; }

 private:
  uintptr_t base_ = 0;
  size_t bytes_ = 0;
};

}  // namespace mobius::os
