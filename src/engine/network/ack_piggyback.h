// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Decides whether an answer to a peer goes at once in a frame of its own, or waits a little for a
// message of the program to the same peer. Two processes that put into each other's memory in turn
// need half the frames if answers wait. A process that only serves another must not let answers
// wait. The decision follows from the last answers: whether the program sent something right after
// they went.
//
// A shared frame saves some ten microseconds. An answer that waits in vain goes at a later check,
// soon or much later. The score counts both in frames: one up for each answer that could share a
// frame, and down by the time that an answer has waited in vain. Answers that would have waited in
// vain lower the score only so far that a few good ones in a row make up for them.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace mobius::engine {

// Times are in nanoseconds. The holder of the link's lock calls all but note_heard().
class AckPiggyback {
 public:
  // A message that the program sends so soon after an answer could have shared its frame.
  static constexpr uint64_t kSoonNs = 3'000;

  // Whether the next answer waits.
  bool waits() {
    if (was_heard_.load(std::memory_order_relaxed)) {
      was_heard_.store(false, std::memory_order_relaxed);
      note_nothing();
    }
    return score_ >= kNeeded;
  }

  // An answer has gone alone.
  void note_alone(uint64_t now) { alone_.store(now, std::memory_order_relaxed); }

  // Whether the last answer has gone alone and it is not known yet what followed.
  bool is_undecided() const { return alone_.load(std::memory_order_relaxed) != 0; }

  // The program sends, and a waiting answer shares the frame.
  void note_rode() {
    alone_.store(0, std::memory_order_relaxed);
    score_ = std::min(score_ + 1, kMost);
  }

  // The program sends, and no answer has waited for it.
  void note_own(uint64_t now) {
    const uint64_t alone = alone_.exchange(0, std::memory_order_relaxed);
    if (alone != 0 && now - alone <= kSoonNs) {
      score_ = std::min(score_ + 1, kMost);
    } else if (alone != 0) {
      note_nothing();
    }
  }

  // A record of the peer came before the program sent: the peer needed the answer. Any thread.
  void note_heard() {
    if (alone_.load(std::memory_order_relaxed) != 0) {
      alone_.store(0, std::memory_order_relaxed);
      was_heard_.store(true, std::memory_order_relaxed);
    }
  }

  // An answer has waited in vain.
  void note_missed(uint64_t waited_ns) {
    const auto frames = static_cast<int>(std::min<uint64_t>(waited_ns / kFrameNs, -kLeastMissed));
    score_ = std::max(score_ - 2 - frames, kLeastMissed);
  }

 private:
  static constexpr int kNeeded = 3;
  static constexpr int kMost = 32;
  static constexpr int kNothing = 4;
  static constexpr int kLeast = -3;
  static constexpr int kLeastMissed = -93;  // 96 in a row make up for it
  static constexpr uint64_t kFrameNs = 10'000;

  // An answer that has gone alone would have waited in vain.
  void note_nothing() { score_ = std::min(score_, std::max(score_ - kNothing, kLeast)); }

  int score_ = 0;
  std::atomic<uint64_t> alone_ = 0;  // 0: none has, or it is known what followed
  std::atomic<bool> was_heard_ = false;
};

}  // namespace mobius::engine
