// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The pattern by which the members of a large team meet. The members form rows. Each member first
// waits for the flags of all others of its row, then for one member of each other row, which posts
// once its own row has met. So each member knows that all have come, after reading twice as many
// flags as a row has members, in two steps of one cache miss each.

#include <mobius/job.h>

#include <algorithm>
#include <vector>

namespace mobius::engine {

class GridBarrier {
 public:
  GridBarrier(mob_rank_t size, mob_rank_t rank) : size_(size) {
    while ((rows_ + 1) * (rows_ + 1) <= size) ++rows_;
    while (start(row_ + 1) <= rank) ++row_;
    place_ = rank - start(row_);
  }

  // The other members of the own row.
  std::vector<mob_rank_t> row() const {
    std::vector<mob_rank_t> result;
    for (mob_rank_t i = 0; i < length(row_); ++i) {
      if (i != place_) result.push_back(start(row_) + i);
    }
    return result;
  }
  // The members of other rows whose flags this member reads: those at its place, or the last of a
  // shorter row.
  std::vector<mob_rank_t> other_rows() const {
    std::vector<mob_rank_t> result;
    for (mob_rank_t r = 0; r < rows_; ++r) {
      if (r != row_) result.push_back(start(r) + std::min(place_, length(r) - 1));
    }
    return result;
  }
  // The members of other rows that read this member's flag.
  std::vector<mob_rank_t> onlookers() const {
    std::vector<mob_rank_t> result;
    const mob_rank_t own_last = length(row_) - 1;
    for (mob_rank_t r = 0; r < rows_; ++r) {
      for (mob_rank_t i = 0; r != row_ && i < length(r); ++i) {
        if (std::min(i, own_last) == place_) result.push_back(start(r) + i);
      }
    }
    return result;
  }

 private:
  // Rows follow each other; the first ones may have one member more than the others.
  mob_rank_t start(mob_rank_t row) const {
    return row * (size_ / rows_) + std::min(row, size_ % rows_);
  }
  mob_rank_t length(mob_rank_t row) const { return start(row + 1) - start(row); }

  const mob_rank_t size_;
  mob_rank_t rows_ = 1;
  mob_rank_t row_ = 0;
  mob_rank_t place_ = 0;
};

}  // namespace mobius::engine
