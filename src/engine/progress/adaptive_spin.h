// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How long a serving thread polls before it sleeps: requests that came lately will probably be
// followed by others, and waking a thread takes longer than finding it awake.
//
// It does not spin when another thread wants this processor: the kernel runs a thread that was
// asleep at once, but not one that has used up its time by spinning. And it spins more and more
// seldom while nothing comes: the process that would send the next request may be waiting for this
// very processor.

#include <algorithm>
#include <cstdint>

namespace mobius::engine {

// Times in nanoseconds. By one thread.
class AdaptiveSpin {
 public:
  explicit AdaptiveSpin(uint64_t spin_ns) : spin_ns_(spin_ns) {}

  void note_found() {
    if (spin_end_ != 0) vain_ = 0;
    spin_end_ = 0;
  }

  // The thread does something else than polling.
  void note_left() { spin_end_ = 0; }

  // After a poll that found nothing: whether to poll again at once. If not, the thread sleeps until
  // it is woken.
  bool looks_again(uint64_t now) {
    if (spin_end_ != 0) {
      if (now - last_look_ > kInterruptedNs) {
        asleep_end_ = now + kBackOffNs;
        return give_up();
      }
      last_look_ = now;
      return now < spin_end_ || give_up();
    }
    if (spin_ns_ == 0 || now < asleep_end_) return false;
    if (skips_ != 0) {
      --skips_;
      return false;
    }
    last_look_ = now;
    spin_end_ = now + spin_ns_;
    return true;
  }

 private:
  // A longer time between two polls, each of which takes less than a microsecond, means that
  // another thread ran here.
  static constexpr uint64_t kInterruptedNs = 200'000;
  static constexpr uint64_t kBackOffNs = 50'000'000;
  static constexpr uint32_t kMostVain = 7;  // that are told from one another

  bool give_up() {
    skips_ = (1u << vain_) - 1;
    vain_ = std::min(vain_ + 1, kMostVain);
    spin_end_ = 0;
    return false;
  }

  const uint64_t spin_ns_;
  uint64_t spin_end_ = 0;  // 0: not looking
  uint64_t last_look_ = 0;
  uint64_t asleep_end_ = 0;
  uint32_t vain_ = 0;   // how often in a row nothing came while it looked
  uint32_t skips_ = 0;  // how often it sleeps without a second look
};

}  // namespace mobius::engine
