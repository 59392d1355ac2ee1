// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mobius::os {

// The memory that this process may read, or write, as the kernel lists it now. Takes about as long
// as a thousand small transfers, so it is only for errors.
class AccessibleMemory {
 public:
  explicit AccessibleMemory(bool to_write);

  // The first of these bytes that may not be accessed; 0 if all may, or if the list is unknown.
  uintptr_t first_outside(uintptr_t start, size_t bytes) const;

 private:
  bool known_ = false;
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges_;  // begin and end, ascending
};

}  // namespace mobius::os
