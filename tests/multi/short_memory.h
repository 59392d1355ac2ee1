// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace mobius_test {

// During its lifetime, `new` of so many bytes or more fails in every thread of this process.
// Sanitizers have a `new` of their own; is_possible() is false there.
class ShortMemory {
 public:
  explicit ShortMemory(std::size_t least_refused);
  ~ShortMemory();
  ShortMemory(const ShortMemory&) = delete;
  ShortMemory& operator=(const ShortMemory&) = delete;

  static bool is_possible();
};

}  // namespace mobius_test
