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
//
// Giving back never allocates. Between two free pieces lies a block or the end of a range, so there
// are never more free pieces than blocks and ranges; the nodes for that many are allocated when
// blocks and ranges are made.
class RangeAllocator {
 public:
  explicit RangeAllocator(size_t bytes = 0) {
    if (bytes > 0) add(0, bytes);
  }

  // `bytes` > 0, `alignment` a power of two. False, with nothing taken, when no free piece holds
  // them; nothing is taken either where std::bad_alloc is thrown.
  bool allocate(size_t bytes, size_t alignment, size_t* offset) {
    for (auto it = by_length_.lower_bound({bytes, 0}); it != by_length_.end(); ++it) {
      const Range piece{it->second, it->first};
      const size_t start = (piece.offset + alignment - 1) & ~(alignment - 1);
      const size_t skipped = start - piece.offset;
      if (skipped > piece.bytes - bytes) continue;
      keep_nodes(edges_ + 1);
      ++edges_;
      erase(piece);
      if (skipped > 0) insert({piece.offset, skipped});
      if (skipped + bytes < piece.bytes) insert({start + bytes, piece.bytes - skipped - bytes});
      *offset = start;
      return true;
    }
    return false;
  }

  // Gives back what allocate() returned. Returns the free piece that it lies in now.
  Range release(size_t offset, size_t bytes) noexcept {
    const Range piece = give_back(offset, bytes);
    --edges_;
    drop_nodes();
    return piece;
  }

  // Gives back the end of what allocate() returned, from `offset` on.
  void shorten(size_t offset, size_t bytes) noexcept { give_back(offset, bytes); }

  // Adds a range that is new; nothing, where std::bad_alloc is thrown.
  void add(size_t offset, size_t bytes) {
    keep_nodes(edges_ + 1);
    ++edges_;
    give_back(offset, bytes);
  }

  // Takes a range that is free as a whole, as release() returned it, out again.
  void remove(Range piece) noexcept {
    erase(piece);
    --edges_;
    drop_nodes();
  }

  size_t free_pieces() const { return by_offset_.size(); }

 private:
  // So many nodes more than needed are kept, so that a caller that allocates and frees one block
  // again and again allocates no nodes.
  static constexpr size_t kSpare = 32;

  Range give_back(size_t offset, size_t bytes) noexcept {
    Range piece{offset, bytes};
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, before_bytes] = *std::prev(next);
      if (before + before_bytes == offset) piece = {before, before_bytes + bytes};
    }
    size_t next_bytes = 0;
    if (next != by_offset_.end() && offset + bytes == next->first) next_bytes = next->second;
    if (next_bytes != 0) erase({offset + bytes, next_bytes});
    if (piece.offset != offset) erase({piece.offset, offset - piece.offset});
    piece.bytes += next_bytes;
    insert(piece);
    return piece;
  }

  void insert(Range piece) noexcept {
    auto at = spare_offsets_.extract(std::prev(spare_offsets_.end()));
    at.key() = piece.offset;
    at.mapped() = piece.bytes;
    by_offset_.insert(std::move(at));
    auto length = spare_lengths_.extract(std::prev(spare_lengths_.end()));
    length.value() = {piece.bytes, piece.offset};
    by_length_.insert(std::move(length));
  }

  void erase(Range piece) noexcept {
    auto at = by_offset_.extract(piece.offset);
    at.key() = spare_offsets_.size();
    spare_offsets_.insert(std::move(at));
    auto length = by_length_.extract({piece.bytes, piece.offset});
    length.value() = {spare_lengths_.size(), 0};
    spare_lengths_.insert(std::move(length));
  }

  void keep_nodes(size_t pieces) {
    while (by_offset_.size() + spare_offsets_.size() < pieces) {
      spare_offsets_.emplace_hint(spare_offsets_.end(), spare_offsets_.size(), 0);
    }
    while (by_length_.size() + spare_lengths_.size() < pieces) {
      spare_lengths_.emplace_hint(spare_lengths_.end(), spare_lengths_.size(), 0);
    }
  }

  void drop_nodes() noexcept {
    while (by_offset_.size() + spare_offsets_.size() > edges_ + kSpare && !spare_offsets_.empty()) {
      spare_offsets_.erase(std::prev(spare_offsets_.end()));
    }
    while (by_length_.size() + spare_lengths_.size() > edges_ + kSpare && !spare_lengths_.empty()) {
      spare_lengths_.erase(std::prev(spare_lengths_.end()));
    }
  }

  using ByOffset = std::map<size_t, size_t>;
  using ByLength = std::set<std::pair<size_t, size_t>>;

  // The same pieces, none empty, no two adjacent: offset → bytes, and (bytes, offset).
  ByOffset by_offset_;
  ByLength by_length_;
  // Nodes of these for pieces to come, by a number that is nothing but unique.
  ByOffset spare_offsets_;
  ByLength spare_lengths_;
  size_t edges_ = 0;  // blocks and ranges
};

}  // namespace mobius::engine
