// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How long a thread that serves others looks before it sleeps: what has come lately comes soon
// again, and it takes longer to be woken than to be found awake.
//
// Not when somebody else wants this processor: the kernel lets a thread that was asleep run at
// once, but not one that has spun. And ever more seldom while it looks in vain: who would send the
// next request may be waiting for this very processor, and gets it when the thread sleeps.

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

  // The thread does something else than to look.
  void note_left() { spin_end_ = 0; }

  // After nothing was found: whether to look again at once. If not, the thread sleeps until
  // something is there.
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
  // Between two looks, each well below a microsecond: another thread ran here.
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
