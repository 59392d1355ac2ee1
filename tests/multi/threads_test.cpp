// SPDX-License-Identifier: BSD-3-Clause

// Transfers from many threads at once. They share the table of targets, whose entries change
// between allocations all the time here.

#include <atomic>
#include <thread>

#include "fixture.h"

using mobius_test::Shared;

namespace {

constexpr size_t kThreads = 4;
constexpr size_t kWords = 64;  // of each thread in each allocation
// A hooked call takes as long as a hundred others.
const uint64_t kRounds = std::getenv("MOBIUS_HOOKS") != nullptr ? 30 : 300;

uint64_t value_of(mob_rank_t origin, size_t thread, size_t word, uint64_t round) {
  return static_cast<uint64_t>(origin) << 48 | static_cast<uint64_t>(thread) << 40 |
         static_cast<uint64_t>(word) << 32 | round;
}

}  // namespace

TEST(Threads, TransfersToTwoAllocationsFromManyThreads) {
  constexpr size_t kBytes = kThreads * kWords * sizeof(uint64_t);
  const Shared first(kBytes);
  const Shared second(2 * kBytes);  // another size, so that confused entries would be noticed
  const mob_rank_t me = mob_rank();
  const mob_rank_t target = mobius_test::right_of(me);
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto* own_first = reinterpret_cast<uint64_t*>(first.at(target)) + t * kWords;
      // The end of the larger one, outside the bounds of the other.
      auto* own_second = reinterpret_cast<uint64_t*>(second.at(target, kBytes)) + t * kWords;
      for (uint64_t round = 0; round < kRounds; ++round) {
        for (size_t w = 0; w < kWords; ++w) {
          const uint64_t value = value_of(me, t, w, round);
          uint64_t back = 0;
          size_t bad = mob_put8(target, own_first + w, value) != MOB_OK;
          bad += mob_put(target, own_second + w, &value, sizeof value) != MOB_OK;
          bad += mob_get8(target, own_first + w, &back) != MOB_OK || back != value;
          bad += mob_get8(target, own_second + w, &back) != MOB_OK || back != value;
          if (bad != 0) wrong += bad;
        }
        // A wrong access stays an error, whichever part the entry describes at the moment.
        uint64_t unused = 0;
        if (mob_get8(target, second.at(target) + 2 * kBytes, &unused) != MOB_ERR_RANGE) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  mobius_test::barrier();
  const mob_rank_t origin = mobius_test::left_of(me);
  size_t lost = 0;
  for (size_t t = 0; t < kThreads; ++t) {
    for (size_t w = 0; w < kWords; ++w) {
      const uint64_t expected = value_of(origin, t, w, kRounds - 1);
      lost += reinterpret_cast<uint64_t*>(first.local())[t * kWords + w] != expected;
      lost += reinterpret_cast<uint64_t*>(second.local() + kBytes)[t * kWords + w] != expected;
    }
  }
  EXPECT_EQ(lost, 0u);
  mobius_test::barrier();
}
