// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether an answer to a peer goes at once, in a frame of its own, or waits a little for what the
// program is about to send to the same peer. Two processes that put into each other's memory in
// turn need half the frames if answers wait; one that serves another, and sends nothing itself,
// must not let it wait. Which of the two it is, the last answers tell: those that would have had
// something to ride on right after they went.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace mobius::engine {

// Times in nanoseconds. By who holds the lock of the link, but for note_heard().
class Riding {
 public:
  // Whether the next answer is to wait.
  bool waits() {
    if (was_heard_.load(std::memory_order_relaxed)) {
      was_heard_.store(false, std::memory_order_relaxed);
      in_a_row_ = 0;
    }
    return in_a_row_ >= needed_;
  }

  // An answer has gone alone.
  void note_alone(uint64_t now) { alone_.store(now, std::memory_order_relaxed); }

  // Whether an answer has gone alone of which is not known yet what came after it.
  bool is_undecided() const { return alone_.load(std::memory_order_relaxed) != 0; }

  // The program sends; `held`: an answer has waited, and goes with it.
  void note_own(uint64_t now, bool held) {
    const uint64_t alone = alone_.exchange(0, std::memory_order_relaxed);
    if (held || (alone != 0 && now - alone <= kSoonNs)) {
      in_a_row_ = std::min(in_a_row_ + 1, kTrusted);
      if (in_a_row_ == kTrusted) needed_ = kFirstNeeded;
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
  void note_missed() {
    in_a_row_ = 0;
    needed_ = std::min(needed_ * 2, kTrusted);
  }

 private:
  static constexpr uint64_t kSoonNs = 3'000;
  static constexpr uint32_t kFirstNeeded = 3;
  static constexpr uint32_t kTrusted = 96;  // from then on, as if none had waited for nothing

  uint32_t in_a_row_ = 0;
  uint32_t needed_ = kFirstNeeded;
  std::atomic<uint64_t> alone_ = 0;  // 0: none has, or what came next is known
  std::atomic<bool> was_heard_ = false;
};

}  // namespace mobius::engine
