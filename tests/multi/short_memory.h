// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace mobius_test {

// While one lives, `new` of this process, of whatever thread, gives nobody so many bytes or more.
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
