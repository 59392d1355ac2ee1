// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace mobius::engine {

// A piece of a range.
struct Range {
  size_t offset;
  size_t bytes;
};

// Hands out pieces of ranges: the shortest free piece that fits, the lowest of several; neighbours
// merge when freed. A pure function of its calls, so that processes that make the same calls get
// the same offsets without talking. Keeps its books outside the ranges. Not thread-safe.
class RangeAllocator {
 public:
  explicit RangeAllocator(size_t bytes = 0) {
    if (bytes > 0) insert({0, bytes});
  }

  // `bytes` > 0, `alignment` a power of two. False, with nothing taken, when no free piece holds
  // them.
  bool allocate(size_t bytes, size_t alignment, size_t* offset) {
    for (auto it = by_length_.lower_bound({bytes, 0}); it != by_length_.end(); ++it) {
      const Range piece{it->second, it->first};
      const size_t start = (piece.offset + alignment - 1) & ~(alignment - 1);
      const size_t skipped = start - piece.offset;
      if (skipped > piece.bytes - bytes) continue;
      by_length_.erase(it);
      by_offset_.erase(piece.offset);
      if (skipped > 0) insert({piece.offset, skipped});
      if (skipped + bytes < piece.bytes) insert({start + bytes, piece.bytes - skipped - bytes});
      *offset = start;
      return true;
    }
    return false;
  }

  // Gives back what allocate() returned, or part of it, or adds a range that is new. Returns the
  // free piece that it lies in now.
  Range release(size_t offset, size_t bytes) {
    Range piece{offset, bytes};
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, before_bytes] = *std::prev(next);
      if (before + before_bytes == offset) piece = {before, before_bytes + bytes};
    }
    if (next != by_offset_.end() && offset + bytes == next->first) piece.bytes += next->second;
    if (piece.offset + piece.bytes != offset + bytes) remove({offset + bytes, next->second});
    if (piece.offset != offset) remove({piece.offset, offset - piece.offset});
    insert(piece);
    return piece;
  }

  // Takes a free piece, as release() returned it, out of the range.
  void remove(Range piece) {
    by_offset_.erase(piece.offset);
    by_length_.erase({piece.bytes, piece.offset});
  }

  size_t free_pieces() const { return by_offset_.size(); }

 private:
  void insert(Range piece) {
    by_offset_.emplace(piece.offset, piece.bytes);
    by_length_.emplace(piece.bytes, piece.offset);
  }

  // The same pieces, none empty, no two adjacent: offset → bytes, and (bytes, offset).
  std::map<size_t, size_t> by_offset_;
  std::set<std::pair<size_t, size_t>> by_length_;
};

}  // namespace mobius::engine
