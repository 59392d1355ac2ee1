// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which of two ways to do the same is the faster one here, where processors and kernels differ in
// it too much for a rule: the first times both are taken by turns, from then on the one that took
// less at its best, since other work of the machine only ever makes things slower.

#include <algorithm>
#include <cstdint>

namespace mobius::engine {

class WayTrial {
 public:
  bool is_over() const { return first_.times == kTimes && second_.times == kTimes; }

  // Whether it is the first way that is to be taken now.
  bool takes_first() const {
    return is_over() ? first_.least_ns < second_.least_ns : first_.times <= second_.times;
  }

  // How long it took once, that way. What was begun before the trial was over may end after it.
  void add(bool first, int64_t ns) {
    Taken& taken = first ? first_ : second_;
    if (taken.times == kTimes) return;
    ++taken.times;
    taken.least_ns = std::min(taken.least_ns, ns);
  }

 private:
  static constexpr int kTimes = 3;
  struct Taken {
    int times = 0;
    int64_t least_ns = INT64_MAX;
  };
  Taken first_;
  Taken second_;
};

}  // namespace mobius::engine
