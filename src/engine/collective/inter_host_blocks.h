// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What collective calls between hosts do with blocks.

#include <mobius/job.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/collective/collective.h"

namespace mobius::engine {

// The most of its mates' blocks that a leader keeps.
inline constexpr size_t kMostRowsBytes = size_t{64} << 20;

inline void copy_block(void* to, const void* from, size_t bytes) {
  if (to != from && bytes != 0) std::memmove(to, from, bytes);
}

// Memory that is written before it is read.
inline std::unique_ptr<char[]> room_for(size_t bytes) {
  return std::make_unique_for_overwrite<char[]>(bytes);
}

// Where blocks lie that follow one another; the last is their end.
inline std::vector<size_t> starts_of(const std::vector<size_t>& sizes) {
  std::vector<size_t> starts{0};
  for (const size_t size : sizes) starts.push_back(starts.back() + size);
  return starts;
}

// Blocks of some of the members, as they lie among those of all.
class Selected {
 public:
  Selected(const Blocks& blocks, const std::vector<mob_rank_t>& members) {
    for (const mob_rank_t member : members) {
      counts_.push_back(blocks.size(member));
      displacements_.push_back(blocks.at(member));
    }
  }
  Blocks blocks() const { return Blocks::listed(counts_.data(), displacements_.data()); }

 private:
  std::vector<size_t> counts_;
  std::vector<size_t> displacements_;
};

}  // namespace mobius::engine
