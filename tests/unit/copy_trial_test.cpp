// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mobius::transport {
namespace {

// What copies take each way, and how many went which.
struct World {
  int64_t cached_ns;
  int64_t past_ns;
  int cached = 0;
  int past = 0;
  int timed = 0;

  void copy(CopyTrial& trial) {
    const bool past_caches = trial.goes_past_caches();
    ++(past_caches ? past : cached);
    if (!trial.begins()) return;
    ++timed;
    trial.add(past_caches ? past_ns : cached_ns);
  }

  // Until that many in a row took the same way.
  int copies_until_settled(CopyTrial& trial, bool past_caches, int in_a_row, int most) {
    int row = 0;
    for (int i = 1; i <= most; ++i) {
      row = trial.goes_past_caches() == past_caches ? row + 1 : 0;
      copy(trial);
      if (row == in_a_row) return i;
    }
    return most + 1;
  }
};

TEST(CopyTrial, TheFirstAreNotTried) {
  CopyTrial trial;
  World world{7000, 2000};
  for (int i = 0; i < 16; ++i) world.copy(trial);
  EXPECT_EQ(world.past, 0);
}

TEST(CopyTrial, WhatIsReadGoesPastTheCachesWhereThatIsMuchFaster) {
  CopyTrial trial;
  World world{7000, 2100};
  for (int i = 0; i < 30; ++i) world.copy(trial);
  EXPECT_TRUE(trial.goes_past_caches());
}

TEST(CopyTrial, WhatTheReaderWaitsLongerCounts) {
  for (const auto& [cached, past] : {std::pair<int64_t, int64_t>{3400, 900},
                                     {1200, 2100},
                                     {1500, 300},
                                     {22'300, 37'800},
                                     {24'500, 19'400}}) {
    CopyTrial trial;
    World world{cached, past};
    for (int i = 0; i < 30; ++i) world.copy(trial);
    EXPECT_FALSE(trial.goes_past_caches()) << cached << " and " << past;
  }
  for (const auto& [cached, past] :
       {std::pair<int64_t, int64_t>{13'400, 900}, {6200, 300}, {26'000, 9300}, {216'000, 18'800}}) {
    CopyTrial trial;
    World world{cached, past};
    for (int i = 0; i < 30; ++i) world.copy(trial);
    EXPECT_TRUE(trial.goes_past_caches()) << cached << " and " << past;
  }
}

// Where the copy before left the lines makes the first of a row unlike the others, and a time now
// and then is that of something else.
TEST(CopyTrial, TheFirstOfARowAndTwoOthersDoNotCount) {
  CopyTrial trial;
  int in_row = 0;
  bool last = false;
  for (int i = 0; i < 30; ++i) {
    const bool past_caches = trial.goes_past_caches();
    if (!trial.begins()) continue;
    in_row = past_caches == last ? in_row + 1 : 0;
    last = past_caches;
    const bool is_odd = in_row < 2 || in_row == 3 || in_row == 5;
    trial.add(past_caches ? 2000 : is_odd ? 90'000 : 1200);
  }
  EXPECT_FALSE(trial.goes_past_caches());
}

TEST(CopyTrial, TriedEverMoreSeldomWhileItSaysTheSame) {
  for (const World start : {World{1200, 2000}, World{30'000, 2000}}) {
    CopyTrial trial;
    World world = start;
    for (int i = 0; i < 100'000; ++i) world.copy(trial);
    EXPECT_LT(std::min(world.past, world.cached), 500);
    EXPECT_GT(std::min(world.past, world.cached), 300);
    EXPECT_LT(world.timed, 8000);
  }
}

TEST(CopyTrial, ASlowCopyIsNoticedAtOnceIfItComesTwice) {
  CopyTrial trial;
  World world{1200, 2000};
  for (int i = 0; i < 20'000; ++i) world.copy(trial);
  ASSERT_FALSE(trial.goes_past_caches());
  // Once.
  for (int i = 0; i < 200; ++i) {
    const bool past_caches = trial.goes_past_caches();
    ASSERT_FALSE(past_caches);
    if (trial.begins()) {
      trial.add(i < 16 ? 9000 : 1200);
    }
  }
  world.cached_ns = 7000;
  EXPECT_LE(world.copies_until_settled(trial, true, 20, 3000), 100);
}

TEST(CopyTrial, WhatIsNoLongerReadGoesThroughTheCachesAgain) {
  CopyTrial trial;
  World world{7000, 2000};
  for (int i = 0; i < 20'000; ++i) world.copy(trial);
  ASSERT_TRUE(trial.goes_past_caches());
  world.cached_ns = 1200;
  EXPECT_LE(world.copies_until_settled(trial, false, 20, 3000), 2100);
}

}  // namespace
}  // namespace mobius::transport
