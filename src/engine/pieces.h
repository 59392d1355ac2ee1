// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

namespace mobius::engine {

// How large data is cut to pass through a smaller memory: into pieces of whole units, and into
// several where that lets one side write a piece while the other reads the one before.
class Pieces {
 public:
  // `unit` > 0 fits into `most`.
  Pieces(size_t total, size_t unit, size_t most) {
    const size_t quarter = (total / 4 + 63) / 64 * 64;
    const size_t wanted = std::min(std::max(quarter, kWorthwhile), most);
    bytes_ = std::max(std::min(wanted, total) / unit, size_t{1}) * unit;
  }

  size_t bytes() const { return bytes_; }

 private:
  // What takes longer to copy than a round takes.
  static constexpr size_t kWorthwhile = size_t{8} << 10;

  size_t bytes_;
};

}  // namespace mobius::engine
