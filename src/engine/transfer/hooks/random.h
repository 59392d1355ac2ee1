// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>

#include <cstdint>
#include <mutex>

namespace mobius::engine {

// Random numbers that repeat with the seed and differ between ranks (SplitMix64). Any thread.
class Random {
 public:
  Random(uint64_t seed, mob_rank_t rank)
      : state_(seed ^ (static_cast<uint64_t>(rank) + 1) * UINT64_C(0xd1342543de82ef95)) {}

  // 0 … limit - 1; limit > 0.
  uint64_t below(uint64_t limit) {
    const std::lock_guard lock(mutex_);
    state_ += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % limit;
  }

 private:
  std::mutex mutex_;
  uint64_t state_;
};

}  // namespace mobius::engine
