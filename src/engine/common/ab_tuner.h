// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Finds out which of two methods is faster on this machine, where processors and kernels differ too
// much for a rule. A trial runs both a few times: by turns, or in rows where a run's time depends
// on what the run before it left in the caches (the first run of a row does not count). Until the
// next trial the faster method is used. The median of three times counts, so that a disturbed run,
// or one that is quick by chance, does not decide. The first runs may be unlike all others (memory
// is touched for the first time, a connection has not grown yet) and programs change what they do,
// so trials are repeated, more and more seldom, as long as all trials together cost about one run
// in three hundred. By turns, a trial ends early where one method takes more than twice as long
// twice in a row, or once if the trial before it found the same.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace mobius::engine {

class AbTuner {
 public:
  enum class Order { kByTurns, kInRows };

  explicit AbTuner(Order order = Order::kByTurns) : order_(order) { start(); }

  // Whether the next run uses the first method.
  bool takes_first() const {
    if (is_over_) return first_is_faster_;
    return order_ == Order::kByTurns ? first_.times <= second_.times : first_.times < kTimes;
  }

  // Called when a run begins, with the method that takes_first() named. Returns whether to time it.
  bool begins() {
    if (!is_over_) return true;
    if (untimed_ != 0) {
      --untimed_;
      return false;
    }
    start();
    return true;
  }

  // Adds the time of one run of a method. A run that began during a trial may end after it.
  void add(bool first, int64_t ns) {
    Taken& taken = first ? first_ : second_;
    if (is_over_ || taken.times == kTimes) return;
    if (taken.times >= 0) taken.ns[taken.times] = ns;
    ++taken.times;
    if (first_.times == kTimes && second_.times == kTimes) {
      decide(first_.middle_ns(), second_.middle_ns(), false);
    } else if (order_ == Order::kByTurns && first_.times == second_.times) {
      decide_if_clear();
    }
  }

 private:
  static constexpr int kTimes = 3;
  static constexpr uint32_t kFirstPause = 16;
  static constexpr uint32_t kShortestMost = 256;
  static constexpr uint32_t kLongestPause = uint32_t{1} << 20;
  struct Taken {
    int times = 0;  // less than 0: so many do not count
    int64_t ns[kTimes] = {};

    int64_t middle_ns() const {
      return std::max(std::min(ns[0], ns[1]), std::min(std::max(ns[0], ns[1]), ns[2]));
    }
    int64_t least_ns() const { return *std::min_element(ns, ns + times); }
  };

  void decide_if_clear() {
    constexpr int64_t kClearly = 2;
    const int64_t first = first_.least_ns();
    const int64_t second = second_.least_ns();
    if (std::max(first, second) <= kClearly * std::min(first, second)) return;
    const bool is_again = is_decided_ && first_is_faster_ == (first < second);
    if (is_again || first_.times == 2) decide(first, second, is_again);
  }

  void decide(int64_t first, int64_t second, bool is_clear_again) {
    first_is_faster_ = first < second;
    if (is_decided_) {
      const int64_t lost = std::abs(first - second) * first_.times;
      pause_ = std::min((is_clear_again ? 4 : 2) * pause_,
                        untimed_until_worth(lost, std::min(first, second)));
    }
    untimed_ = pause_;
    is_over_ = is_decided_ = true;
  }

  // So many that the slower times of a trial make them a three-hundredth slower; and those behind
  // it, that find things where it left them, hardly.
  static uint32_t untimed_until_worth(int64_t lost_ns, int64_t fast_ns) {
    constexpr int64_t kShare = 300;
    const int64_t untimed = kShare * lost_ns / std::max<int64_t>(fast_ns, 1);
    return static_cast<uint32_t>(std::clamp<int64_t>(untimed, kShortestMost, kLongestPause));
  }

  void start() {
    is_over_ = false;
    first_ = second_ = {};
    if (order_ == Order::kInRows) first_.times = second_.times = -1;
  }

  const Order order_;
  Taken first_;
  Taken second_;
  bool is_over_ = false;
  // The result of the last trial.
  bool is_decided_ = false;
  bool first_is_faster_ = false;
  uint32_t pause_ = kFirstPause;
  uint32_t untimed_ = 0;  // left until both are tried again
};

}  // namespace mobius::engine
