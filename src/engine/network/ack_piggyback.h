// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether an answer to a peer goes at once, in a frame of its own, or waits a little for what the
// program is about to send to the same peer. Two processes that put into each other's memory in
// turn need half the frames if answers wait; one that serves another, and sends nothing itself,
// must not let it wait. Which of the two it is, the last answers tell: those that would have had
// something to ride on right after they went.
//
// That something rides saves a frame, some ten microseconds; an answer that waits in vain goes when
// somebody looks, soon or much later. Both are counted in frames: one more for each answer that had
// something to ride on, as many less as it has waited for one that had nothing. What only would
// have waited in vain takes no more than a few in a row make good.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace mobius::engine {

// Times in nanoseconds. By who holds the lock of the link, but for note_heard().
class AckPiggyback {
 public:
  // What the program sends so soon after an answer, that could have ridden on.
  static constexpr uint64_t kSoonNs = 3'000;

  // Whether the next answer is to wait.
  bool waits() {
    if (was_heard_.load(std::memory_order_relaxed)) {
      was_heard_.store(false, std::memory_order_relaxed);
      note_nothing();
    }
    return score_ >= kNeeded;
  }

  // An answer has gone alone.
  void note_alone(uint64_t now) { alone_.store(now, std::memory_order_relaxed); }

  // Whether an answer has gone alone of which is not known yet what came after it.
  bool is_undecided() const { return alone_.load(std::memory_order_relaxed) != 0; }

  // The program sends, and an answer that has waited goes with it.
  void note_rode() {
    alone_.store(0, std::memory_order_relaxed);
    score_ = std::min(score_ + 1, kMost);
  }

  // The program sends, and nothing has waited for that.
  void note_own(uint64_t now) {
    const uint64_t alone = alone_.exchange(0, std::memory_order_relaxed);
    if (alone != 0 && now - alone <= kSoonNs) {
      score_ = std::min(score_ + 1, kMost);
    } else if (alone != 0) {
      note_nothing();
    }
  }

  // Something came of the peer, which needed the answer before the program sent. Any thread.
  void note_heard() {
    if (alone_.load(std::memory_order_relaxed) != 0) {
      alone_.store(0, std::memory_order_relaxed);
      was_heard_.store(true, std::memory_order_relaxed);
    }
  }

  // An answer has waited for nothing.
  void note_missed(uint64_t waited_ns) {
    const auto frames = static_cast<int>(std::min<uint64_t>(waited_ns / kFrameNs, -kLeastMissed));
    score_ = std::max(score_ - 2 - frames, kLeastMissed);
  }

 private:
  static constexpr int kNeeded = 3;
  static constexpr int kMost = 32;
  static constexpr int kNothing = 4;
  static constexpr int kLeast = -3;
  static constexpr int kLeastMissed = -93;  // 96 in a row make it good
  static constexpr uint64_t kFrameNs = 10'000;

  // An answer that has gone alone would have waited for nothing.
  void note_nothing() { score_ = std::min(score_, std::max(score_ - kNothing, kLeast)); }

  int score_ = 0;
  std::atomic<uint64_t> alone_ = 0;  // 0: none has, or what came next is known
  std::atomic<bool> was_heard_ = false;
};

}  // namespace mobius::engine
