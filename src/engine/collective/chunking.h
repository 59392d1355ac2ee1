// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

namespace mobius::engine {

// Splits data that pass through a smaller buffer into pieces of whole units. Several pieces let one
// side write a piece while the other reads the previous one.
class Pieces {
 public:
  // Requires 0 < `unit` <= `most`.
  Pieces(size_t total, size_t unit, size_t most) {
    const size_t quarter = (total / 4 + 63) / 64 * 64;
    const size_t wanted = std::min(std::max(quarter, kWorthwhile), most);
    bytes_ = std::max(std::min(wanted, total) / unit, size_t{1}) * unit;
  }

  size_t bytes() const { return bytes_; }

 private:
  // Copying this much takes longer than one round.
  static constexpr size_t kWorthwhile = size_t{8} << 10;

  size_t bytes_;
};

// The part of `count` elements that one of several members combines. All parts are equally large,
// but for the last ones.
struct Slice {
  Slice(size_t count, size_t element_bytes, size_t member, size_t members) {
    // Whole cache lines if the element size divides them, so that no two members write to one line.
    const size_t grain = 64 % element_bytes == 0 ? 64 / element_bytes : 1;
    const size_t grains = (count + grain - 1) / grain;
    const size_t share = (grains + members - 1) / members * grain;
    first = std::min(member * share, count);
    size = std::min(share, count - first);
  }

  size_t first;
  size_t size;
};

}  // namespace mobius::engine
