// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether what another process is to read is written faster through the caches of the writer or
// past them. No rule tells: if the reader has read what lay there before, each line comes from its
// cache, which takes 70 to 500 ns by where the two processors are, and stores past the caches spare
// that; if nobody read it, or both have one cache, they cost twice as much. So a few copies now and
// then are tried each way. What counts is the writer's own time, and the time from one copy to the
// next, where that shows what the reader, who has to fetch it from memory, took longer.
//
// A row of copies for each way, not by turns: how long one takes is a matter of where the one
// before left the lines, so the first of each row does not count. Rows are tried again ever more
// seldom while they say the same, and soon where the program does something else now: copies
// through the caches have become slow, or those past them come at another pace.

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
    const uint32_t place = untimed_ % kWatched;
    return place == kWatchedPlace || (is_past_faster_ && place == kWatchedPlace - 1);
  }

  // When the copy began and ended, on a clock that does not go back.
  void add(int64_t begin_ns, int64_t end_ns) {
    if (untimed_ != 0) {
      watch(begin_ns, end_ns);
      return;
    }
    begins_[tried_] = begin_ns;
    owns_[tried_] = end_ns - begin_ns;
    if (++tried_ == 2 * kRow) decide();
  }

 private:
  static constexpr size_t kUncounted = 1;
  static constexpr size_t kCounted = 6;
  // The last shows when the one before was over. Eight: two parts of a message, or four, are at the
  // same places of both rows.
  static constexpr size_t kRow = kUncounted + kCounted + 1;
  // One of so many is watched, and the next one past the caches. A prime: parts of a message take
  // turns at it.
  static constexpr uint32_t kWatched = 17;
  static constexpr uint32_t kWatchedPlace = kWatched / 2;
  static constexpr uint32_t kFirstPause = 16;
  static constexpr uint32_t kLongestPause = 2048;
  // What the reader waits longer for memory than for a cache, and nobody sees who does not wait for
  // it: of 16 to 64 KiB on Zen 4 that was 1.7 to 2.6 us.
  static constexpr int64_t kFetchNs = 2600;

  // Of a row, without the longest, which is that of something else.
  struct Times {
    int64_t own = 0;    // of the writer, each
    int64_t cycle = 0;  // from one to the next

    Times(const int64_t* begins, const int64_t* owns) {
      int64_t longest_own = 0;
      int64_t longest_cycle = 0;
      for (size_t i = kUncounted; i < kUncounted + kCounted; ++i) {
        const int64_t to_next = begins[i + 1] - begins[i];
        own += owns[i];
        cycle += to_next;
        longest_own = std::max(longest_own, owns[i]);
        longest_cycle = std::max(longest_cycle, to_next);
      }
      own = (own - longest_own) / (kCounted - 1);
      cycle = (cycle - longest_cycle) / (kCounted - 1);
    }
  };

  static bool is_faster(const Times& past, const Times& cached) {
    if (past.own >= cached.own || past.cycle > cached.cycle * 11 / 10) return false;
    // By nearly a quarter: what is wrongly written past the caches costs twice as much.
    return past.cycle * 13 / 10 < cached.cycle || past.own * 13 / 10 + kFetchNs < cached.own;
  }

  void decide() {
    const Times cached(begins_.data(), owns_.data());
    const Times past(begins_.data() + kRow, owns_.data() + kRow);
    cached_ns_ = cached.own;
    const bool was = is_past_faster_;
    past_cycle_ns_ = past.cycle;
    is_past_faster_ = is_faster(past, cached);
    pause_ = is_past_faster_ == was ? std::min(2 * pause_, kLongestPause) : kFirstPause;
    untimed_ = pause_;
    least_untimed_ = is_past_faster_ ? untimed_until_worth(past, cached) : 0;
    tried_ = 0;
    unlike_ = 0;
  }

  // So many that the row through the caches makes them 5 % slower. The other way round it can only
  // be twice as slow, and copies that have become slow are a better reason to try.
  static uint32_t untimed_until_worth(const Times& past, const Times& cached) {
    constexpr int64_t kShare = 20;
    const int64_t lost = std::max<int64_t>(cached.cycle - past.cycle, 0) * kRow;
    return static_cast<uint32_t>(
        std::min<int64_t>(kShare * lost / std::max<int64_t>(past.cycle, 1), kLongestPause));
  }

  // One alone may be slow for any reason.
  void watch(int64_t begin_ns, int64_t end_ns) {
    if (is_past_faster_ && untimed_ % kWatched == kWatchedPlace) {
      watched_begin_ns_ = begin_ns;
      return;
    }
    const int64_t cycle = begin_ns - watched_begin_ns_;
    const bool is_unlike = is_past_faster_
                               ? 3 * cycle < 2 * past_cycle_ns_ || 2 * cycle > 3 * past_cycle_ns_
                               : end_ns - begin_ns > 2 * cached_ns_;
    unlike_ = is_unlike ? unlike_ + 1 : 0;
    if (unlike_ >= 2 && pause_ - untimed_ >= least_untimed_) untimed_ = 0;
  }

  std::array<int64_t, 2 * kRow> begins_{};
  std::array<int64_t, 2 * kRow> owns_{};
  size_t tried_ = 0;
  int64_t cached_ns_ = INT64_MAX / 2;
  int64_t past_cycle_ns_ = 0;
  int64_t watched_begin_ns_ = 0;
  uint32_t unlike_ = 0;  // in a row
  uint32_t least_untimed_ = 0;
  uint32_t pause_ = kFirstPause;
  uint32_t untimed_ = kFirstPause;  // left until both ways are tried again
  bool is_past_faster_ = false;
};

}  // namespace mobius::transport
