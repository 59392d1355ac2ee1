// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Decides whether data that another process will read is written faster through the writer's caches
// or past them. No rule decides this. If the reader has read the former contents, each line comes
// from the reader's cache, which takes 70 to 500 ns depending on the distance of the two
// processors; stores that bypass the caches avoid that. If no process has read them, or both share
// a cache, such stores cost twice as much. So a few copies are tried each way now and then. Two
// times count: the writer's own time, and the time from one copy to the next where that shows how
// much longer the reader took, because it had to fetch the data from memory.
//
// Data that does not fit into a second-level cache would be read before it is written; stores that
// bypass the caches avoid that too. On an Intel Xeon (Emerald Rapids) this saves a fifth to a third
// of the writer's time if no process reads the data. Data that is read at once took 1.25 to 1.4
// times as long. The time from one copy to the next shows this if enough copies are timed: a
// program may start several before it waits for the reader.
//
// Each way is tried in a row of copies, not alternately: the time of a copy depends on where the
// copy before left the lines, so the first of each row does not count. Rows are repeated at growing
// intervals while the result stays the same, and soon where the program has changed its behaviour:
// copies through the caches have become slow, or copies past them come at another pace.

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mobius::transport {

// For copies of one kind and about one size. One thread at a time.
class CopyTuner {
 public:
  // kLong: copies that do not fit into a second-level cache, where that matters.
  enum class Length { kShort, kLong };

  CopyTuner() = default;
  explicit CopyTuner(Length length) : length_(length) {}

  // Whether the next copy bypasses the caches.
  bool goes_past_caches() const { return untimed_ == 0 ? tried_ >= row() : is_past_faster_; }

  // Called once for each copy, after goes_past_caches(): whether to time this copy and report it to
  // add().
  bool begins() {
    if (untimed_ == 0) return true;
    --untimed_;
    return untimed_ % kWatched == kWatchedPlace;
  }

  // Reports when the copy began and ended, on a monotonic clock.
  void add(int64_t begin_ns, int64_t end_ns) {
    if (untimed_ != 0) {
      watch(begin_ns, end_ns);
      return;
    }
    const bool is_past = tried_ >= row();
    Times& times = is_past ? past_ : cached_;
    const uint32_t place = is_past ? tried_ - row() : tried_;
    if (place > kUncounted) times.cycle.add(begin_ns - last_begin_ns_);
    if (place >= kUncounted && place < kUncounted + counted()) times.own.add(end_ns - begin_ns);
    last_begin_ns_ = begin_ns;
    if (++tried_ == 2 * row() || is_hopeless()) decide();
  }

 private:
  static constexpr uint32_t kUncounted = 1;
  static constexpr uint32_t kSoon = 3;
  static constexpr int64_t kClearly = 3;  // this many times as slow is clearly slower
  static constexpr uint32_t kEnough = 9;  // copies of a long row that suffice
  // One copy in this many is watched. A prime, so that all parts of a message get their turn.
  static constexpr uint32_t kWatched = 17;
  static constexpr uint32_t kWatchedPlace = kWatched / 2;
  static constexpr int64_t kNever = INT64_MIN;
  static constexpr uint32_t kFirstPause = 16;
  static constexpr uint32_t kLeastBetweenLong = 64;  // copies
  static constexpr uint32_t kLongestPause = 2048;
  // The extra time that a reader waits for memory instead of a cache; a writer that does not wait
  // for the reader cannot see it. For 16 to 64 KiB on Zen 4 it was 1.7 to 2.6 us.
  static constexpr int64_t kFetchNs = 2600;

  uint32_t counted() const { return length_ == Length::kLong ? 18 : 6; }
  // The last copy of a row shows when the one before ended. The length is a multiple of four, so
  // that two or four parts of a message have the same places in both rows.
  uint32_t row() const { return kUncounted + counted() + 1; }

  // A mean without the longest time, unless another one is nearly as long: a lone long time is a
  // disturbance.
  class Middle {
   public:
    void add(int64_t ns) {
      ++count_;
      sum_ns_ += ns;
      shortest_ns_ = std::min(shortest_ns_, ns);
      second_ns_ = std::max(second_ns_, std::min(longest_ns_, ns));
      longest_ns_ = std::max(longest_ns_, ns);
    }
    int64_t each_ns() const {
      const bool is_alone = count_ > 1 && longest_ns_ > 2 * second_ns_;
      return is_alone ? (sum_ns_ - longest_ns_) / (count_ - 1) : sum_ns_ / count_;
    }

    int64_t shortest_ns() const { return shortest_ns_; }

   private:
    int64_t count_ = 0;
    int64_t shortest_ns_ = INT64_MAX;
    int64_t sum_ns_ = 0;
    int64_t longest_ns_ = 0;
    int64_t second_ns_ = 0;
  };
  struct Times {
    Middle own;    // the writer's own time
    Middle cycle;  // time from one copy to the next
  };

  bool is_clear() const { return past_.own.shortest_ns() >= kClearly * cached_.own.each_ns(); }

  // Lines that streaming stores evict come back slowly, so the trial ends as soon as its result is
  // clear.
  bool is_hopeless() const {
    if (tried_ == row() + kUncounted + 1) return is_clear();
    if (tried_ == row() + kUncounted + kSoon) {
      return past_.own.shortest_ns() >= cached_.own.each_ns();
    }
    return tried_ == row() + kUncounted + kEnough &&
           past_.cycle.each_ns() >= cached_.cycle.each_ns();
  }

  bool is_faster() const {
    const int64_t past_own = past_.own.each_ns();
    const int64_t cached_own = cached_.own.each_ns();
    if (past_own >= cached_own) return false;  // also if no copy followed another
    const int64_t past = past_.cycle.each_ns();
    const int64_t cached = cached_.cycle.each_ns();
    if (past > cached * 11 / 10) return false;
    if (length_ == Length::kLong) return past * 21 / 20 < cached;
    // By nearly a quarter: wrongly bypassing the caches costs twice as much.
    return past * 13 / 10 < cached || past_own * 13 / 10 + kFetchNs < cached_own;
  }

  void decide() {
    cached_ns_ = cached_.own.each_ns();
    const bool was = std::exchange(is_past_faster_, is_faster());
    pace_ns_ = (is_past_faster_ ? past_ : cached_).cycle.each_ns();
    const uint32_t longer = is_clear() ? 4 : 2;
    pause_ = is_past_faster_ == was ? std::min(longer * pause_, kLongestPause) : kFirstPause;
    untimed_ = pause_;
    least_untimed_ = is_past_faster_            ? untimed_until_worth()
                     : length_ == Length::kLong ? kLeastBetweenLong
                                                : 0;
    tried_ = 0;
    cached_ = past_ = {};
    unlike_ = 0;
    watched_begin_ns_ = kNever;
  }

  // The number of copies after which a row through the caches slows them all down by 2 %. The
  // opposite error can only be twice as slow, and copies that have become slow are a better reason
  // to try again.
  uint32_t untimed_until_worth() const {
    constexpr int64_t kShare = 50;
    const int64_t past = past_.cycle.each_ns();
    const int64_t lost = std::max<int64_t>(cached_.cycle.each_ns() - past, 0) * row();
    return static_cast<uint32_t>(
        std::min<int64_t>(kShare * lost / std::max<int64_t>(past, 1), kLongestPause));
  }

  // A change of the program's behaviour shows in the time from one copy to the next if copies
  // bypass the caches or are long, otherwise in the time of one copy. A single slow copy may have
  // any reason.
  void watch(int64_t begin_ns, int64_t end_ns) {
    bool is_unlike = end_ns - begin_ns > 2 * cached_ns_;
    if (is_past_faster_ || length_ == Length::kLong) {
      const int64_t before_ns = std::exchange(watched_begin_ns_, begin_ns);
      if (before_ns == kNever) return;
      const int64_t cycle = (begin_ns - before_ns) / kWatched;
      is_unlike = 3 * cycle < 2 * pace_ns_ || 2 * cycle > 3 * pace_ns_;
    }
    unlike_ = is_unlike ? unlike_ + 1 : 0;
    if (unlike_ >= 2 && pause_ - untimed_ >= least_untimed_) untimed_ = 0;
  }

  Length length_ = Length::kShort;
  uint32_t tried_ = 0;
  Times cached_;
  Times past_;
  int64_t last_begin_ns_ = 0;
  int64_t cached_ns_ = INT64_MAX / 2;
  int64_t pace_ns_ = 0;                // time from one copy to the next, of the chosen way
  int64_t watched_begin_ns_ = kNever;  // when the last watched copy began
  uint32_t unlike_ = 0;                // consecutive watched copies that differ
  uint32_t least_untimed_ = 0;
  uint32_t pause_ = kFirstPause;
  uint32_t untimed_ = kFirstPause;  // copies left until both ways are tried again
  bool is_past_faster_ = false;
};

}  // namespace mobius::transport
