// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>

namespace mobius::engine {

// Hands out pieces of [0, bytes): first fit by offset, neighbours merged when freed. A pure
// function of its calls, so that processes that make the same calls get the same offsets without
// talking. Not thread-safe.
class RangeAllocator {
 public:
  explicit RangeAllocator(size_t bytes = 0) {
    if (bytes > 0) free_.emplace(0, bytes);
  }

  // False, with nothing taken, when no free piece is as long as `bytes` (> 0).
  bool allocate(size_t bytes, size_t* offset) {
    for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
      if (piece->second < bytes) continue;
      *offset = piece->first;
      if (piece->second > bytes) {
        free_.emplace_hint(std::next(piece), piece->first + bytes, piece->second - bytes);
      }
      free_.erase(piece);
      return true;
    }
    return false;
  }

  // Gives back what allocate() returned, whole.
  void release(size_t offset, size_t bytes) {
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += bytes;
        return;
      }
    }
    free_.emplace(offset, bytes);
  }

  size_t free_pieces() const { return free_.size(); }

 private:
  std::map<size_t, size_t> free_;  // offset → bytes; never empty pieces, never adjacent ones
};

}  // namespace mobius::engine
