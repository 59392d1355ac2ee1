// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Helpers for blocks in collective calls between hosts.

#include <mobius/job.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/collective/collective.h"

namespace mobius::engine {

// The largest number of bytes that a leader buffers for the members of its host.
inline constexpr size_t kMostRowsBytes = size_t{64} << 20;

inline void copy_block(void* to, const void* from, size_t bytes) {
  if (to != from && bytes != 0) std::memmove(to, from, bytes);
}

// Uninitialised memory; the caller writes it before it reads it.
inline std::unique_ptr<char[]> room_for(size_t bytes) {
  return std::make_unique_for_overwrite<char[]>(bytes);
}

// The offsets of consecutive blocks, and at the end their total.
inline std::vector<size_t> starts_of(const std::vector<size_t>& sizes) {
  std::vector<size_t> starts{0};
  for (const size_t size : sizes) starts.push_back(starts.back() + size);
  return starts;
}

// The blocks of some members, at their places among those of all members.
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
