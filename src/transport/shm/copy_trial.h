// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether what another process is to read is written faster through the caches of the writer or
// past them. No rule tells: if the reader has read what lay there before, each line comes from its
// cache, which takes 70 to 500 ns by where the two processors are, and stores past the caches spare
// that; if nobody read it, or both have one cache, they cost twice as much. But the writer's own
// time tells, so a few copies now and then are tried each way.
//
// A row of copies for each way, not by turns: how long one takes is a matter of where the one
// before left the lines, so the first of each row do not count. Rows are tried again ever more
// seldom while they say the same, and at once where copies through the caches become slow: their
// reader has begun to read.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace mobius::transport {

// Of copies of one kind and about one size. One thread at a time.
class CopyTrial {
 public:
  // The way that the next copy takes.
  bool goes_past_caches() const { return untimed_ == 0 ? tried_ >= kRow : is_past_faster_; }

  // Once for each copy, behind goes_past_caches(): whether to time it, and add() that.
  bool begins() {
    if (untimed_ == 0) return true;
    --untimed_;
    return !is_past_faster_ && untimed_ % kWatched == kWatched / 2;
  }

  void add(int64_t ns) {
    if (untimed_ != 0) {
      watch(ns);
      return;
    }
    times_[tried_++] = ns;
    if (tried_ == 2 * kRow) decide();
  }

 private:
  static constexpr size_t kRow = 7;
  static constexpr size_t kUncounted = 2;
  static constexpr uint32_t kWatched = 16;  // one of so many is
  static constexpr uint32_t kFirstPause = 16;
  static constexpr uint32_t kLongestPause = 2048;
  // What the writer does not see: the reader waits for memory, and not for a cache. Of 16 to 64 KiB
  // on Zen 4 that took 1.7 to 2.6 us longer.
  static constexpr int64_t kFetchNs = 2600;

  int64_t middle_of_row(size_t first) {
    const auto begin = times_.begin() + static_cast<ptrdiff_t>(first + kUncounted);
    const auto middle = begin + (kRow - kUncounted) / 2;
    std::nth_element(begin, middle, begin + (kRow - kUncounted));
    return *middle;
  }

  void decide() {
    cached_ns_ = middle_of_row(0);
    const bool was = is_past_faster_;
    is_past_faster_ = cached_ns_ > middle_of_row(kRow) * 13 / 10 + kFetchNs;
    pause_ = is_past_faster_ == was ? std::min(2 * pause_, kLongestPause) : kFirstPause;
    untimed_ = pause_;
    tried_ = 0;
    slow_ = 0;
  }

  // One alone may be slow for any reason.
  void watch(int64_t ns) {
    slow_ = ns > 2 * cached_ns_ ? slow_ + 1 : 0;
    if (slow_ == 2) untimed_ = 0;
  }

  std::array<int64_t, 2 * kRow> times_{};
  size_t tried_ = 0;
  int64_t cached_ns_ = INT64_MAX / 2;
  uint32_t slow_ = 0;
  uint32_t pause_ = kFirstPause;
  uint32_t untimed_ = kFirstPause;  // left until both ways are tried again
  bool is_past_faster_ = false;
};

}  // namespace mobius::transport
