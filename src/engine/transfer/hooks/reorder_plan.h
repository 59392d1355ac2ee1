// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "engine/transfer/hooks/random.h"

namespace mobius::engine {

// Holds operations and chooses the next one at random: operations that are held at the same time
// are not ordered, because a fence takes all of them before more are added. Callers exclude each
// other.
template <typename T>
class ReorderPlan {
 public:
  ReorderPlan(uint64_t seed, mob_rank_t rank) : random_(seed, rank) {}

  bool empty() const { return held_.empty(); }
  size_t size() const { return held_.size(); }
  void add(T item) { held_.push_back(std::move(item)); }

  // Takes one; there must be one.
  T take() {
    std::swap(held_[random_.below(held_.size())], held_.back());
    T item = std::move(held_.back());
    held_.pop_back();
    return item;
  }

 private:
  std::vector<T> held_;
  Random random_;
};

}  // namespace mobius::engine
