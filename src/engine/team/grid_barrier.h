// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Who looks at whom where the members of a large team meet: first everyone at those of its row,
// then at one member of each other row, whose row has met by then. So everyone knows that all have
// come, having looked at twice as many flags as a row has members, in two trips of a cache line.

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

  // The others of its row.
  std::vector<mob_rank_t> row() const {
    std::vector<mob_rank_t> result;
    for (mob_rank_t i = 0; i < length(row_); ++i) {
      if (i != place_) result.push_back(start(row_) + i);
    }
    return result;
  }
  // Whom it looks at in the other rows: whoever has its place, or the last one.
  std::vector<mob_rank_t> across() const {
    std::vector<mob_rank_t> result;
    for (mob_rank_t r = 0; r < rows_; ++r) {
      if (r != row_) result.push_back(start(r) + std::min(place_, length(r) - 1));
    }
    return result;
  }
  // Who looks at it in the other rows.
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
  // Rows follow each other, and the first ones may have a member more than the others.
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
