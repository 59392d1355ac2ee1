// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "random/rank.h"

namespace random_program {

inline constexpr int kMostThreads = 4;

struct RankRunner::Board {
  mob_counter_t counters[kMostThreads];
  mob_counter_t sync_counter;
  unsigned char* memory;
  alignas(8) uint64_t signals;
  mob_lock_t locks[1 + kMostThreads];
  uint64_t logs[kMostThreads][kLogWords];
};

}  // namespace random_program
