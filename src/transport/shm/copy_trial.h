// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether what another process is to read is written faster through the caches of the writer or
// past them. No rule tells: if the reader has read what lay there before, each line comes from its
// cache, which takes 70 to 500 ns by where the two processors are, and stores past the caches spare
// that; if nobody read it, or both have one cache, they cost twice as much. So a few copies now and
// then are tried each way. What counts is the writer's own time, and the time from one copy to the
// next, where that shows what the reader, who has to fetch it from memory, took longer.
//
// What a second-level cache does not hold would be read before it is written, which stores past the
// caches spare: by a fifth to a third of the writer's time on an Intel Xeon (Emerald Rapids), where
// nobody reads it. But what is read at once took 1.25 to 1.4 times as long then. That shows in the
// time from one copy to the next, if it is taken of enough of them: a program may start several
// before it waits for who reads them.
//
// A row of copies for each way, not by turns: how long one takes is a matter of where the one
// before left the lines, so the first of each row does not count. Rows are tried again ever more
// seldom while they say the same, and soon where the program does something else now: copies
// through the caches have become slow, or those past them come at another pace.

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mobius::transport {

// Of copies of one kind and about one size. One thread at a time.
class CopyTrial {
 public:
  // Of what a second-level cache does not hold, where that matters, or of less.
  enum class Length { kShort, kLong };

  CopyTrial() = default;
  explicit CopyTrial(Length length) : length_(length) {}

  // The way that the next copy takes.
  bool goes_past_caches() const { return untimed_ == 0 ? tried_ >= row() : is_past_faster_; }

  // Once for each copy, behind goes_past_caches(): whether to time it, and add() that.
  bool begins() {
    if (untimed_ == 0) return true;
    --untimed_;
    return untimed_ % kWatched == kWatchedPlace;
  }

  // When the copy began and ended, on a clock that does not go back.
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
  static constexpr int64_t kClearly = 3;  // times as slow
  static constexpr uint32_t kEnough = 9;  // of a long row
  // One of so many is watched. A prime: parts of a message take turns at it.
  static constexpr uint32_t kWatched = 17;
  static constexpr uint32_t kWatchedPlace = kWatched / 2;
  static constexpr int64_t kNever = INT64_MIN;
  static constexpr uint32_t kFirstPause = 16;
  static constexpr uint32_t kLeastBetweenLong = 64;  // trials
  static constexpr uint32_t kLongestPause = 2048;
  // What the reader waits longer for memory than for a cache, and nobody sees who does not wait for
  // it: of 16 to 64 KiB on Zen 4 that was 1.7 to 2.6 us.
  static constexpr int64_t kFetchNs = 2600;

  uint32_t counted() const { return length_ == Length::kLong ? 18 : 6; }
  // The last shows when the one before was over. A multiple of four: two parts of a message, or
  // four, are at the same places of both rows.
  uint32_t row() const { return kUncounted + counted() + 1; }

  // Without the longest, which is that of something else unless another one is nearly as long.
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
    Middle own;    // of the writer
    Middle cycle;  // from one to the next
  };

  bool is_clear() const { return past_.own.shortest_ns() >= kClearly * cached_.own.each_ns(); }

  // What stores past the caches drive out of them comes back slowly: no more of them than needed.
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
    if (past_own >= cached_own) return false;  // also where none came behind another
    const int64_t past = past_.cycle.each_ns();
    const int64_t cached = cached_.cycle.each_ns();
    if (past > cached * 11 / 10) return false;
    if (length_ == Length::kLong) return past * 21 / 20 < cached;
    // By nearly a quarter: what is wrongly written past the caches costs twice as much.
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

  // So many that the row through the caches makes them 2 % slower. The other way round it can only
  // be twice as slow, and copies that have become slow are a better reason to try.
  uint32_t untimed_until_worth() const {
    constexpr int64_t kShare = 50;
    const int64_t past = past_.cycle.each_ns();
    const int64_t lost = std::max<int64_t>(cached_.cycle.each_ns() - past, 0) * row();
    return static_cast<uint32_t>(
        std::min<int64_t>(kShare * lost / std::max<int64_t>(past, 1), kLongestPause));
  }

  // Past the caches, and of long ones, it shows in the time from one copy to the next that the
  // program does something else now; otherwise in that of one alone. One may be slow for any
  // reason.
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
  int64_t pace_ns_ = 0;                // of the way that is taken, from one to the next
  int64_t watched_begin_ns_ = kNever;  // of the one watched before
  uint32_t unlike_ = 0;                // in a row
  uint32_t least_untimed_ = 0;
  uint32_t pause_ = kFirstPause;
  uint32_t untimed_ = kFirstPause;  // left until both ways are tried again
  bool is_past_faster_ = false;
};

}  // namespace mobius::transport
