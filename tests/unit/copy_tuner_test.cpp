// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mobius::transport {
namespace {

// The times of copies each way, for the writer alone and until the next copy; and the number of
// copies that went each way.
struct World {
  int64_t cached_ns;
  int64_t past_ns;
  int64_t cached_cycle_ns = 0;  // 0: no time passes between copies
  int64_t past_cycle_ns = 0;
  int64_t now_ns = 0;
  int cached = 0;
  int past = 0;
  int timed = 0;

  void copy(CopyTuner& tuner) {
    const bool past_caches = tuner.goes_past_caches();
    ++(past_caches ? past : cached);
    const int64_t own = past_caches ? past_ns : cached_ns;
    if (tuner.begins()) {
      ++timed;
      tuner.add(now_ns, now_ns + own);
    }
    now_ns += std::max(own, past_caches ? past_cycle_ns : cached_cycle_ns);
  }

  // Copies until that many in a row took the same way.
  int copies_until(CopyTuner& tuner, bool past_caches, int in_a_row, int most) {
    int row = 0;
    for (int i = 1; i <= most; ++i) {
      row = tuner.goes_past_caches() == past_caches ? row + 1 : 0;
      copy(tuner);
      if (row == in_a_row) return i;
    }
    return most + 1;
  }
};

// 16 and two rows.
constexpr int kFirstTrial = 32;

bool goes_past_caches_then(World world) {
  CopyTuner tuner;
  for (int i = 0; i < kFirstTrial; ++i) world.copy(tuner);
  return tuner.goes_past_caches();
}

TEST(CopyTuner, TheFirstAreNotTried) {
  CopyTuner tuner;
  World world{7000, 2000};
  for (int i = 0; i < 16; ++i) world.copy(tuner);
  EXPECT_EQ(world.past + world.timed, 1);  // one is watched
}

// Measured values: the writer alone, and from one put to the next when both processes alternate,
// one put each.
TEST(CopyTuner, TheFasterWayIsTaken) {
  EXPECT_TRUE(goes_past_caches_then({7200, 2100, 16'800, 10'800}));    // 64 KiB
  EXPECT_TRUE(goes_past_caches_then({26'000, 9300, 60'000, 34'800}));  // 256 KiB
  EXPECT_TRUE(goes_past_caches_then({6200, 300, 17'000, 5500}));       // 16 KiB, lines slow
  EXPECT_TRUE(goes_past_caches_then({426'000, 38'000, 935'000, 137'000}));
  EXPECT_FALSE(goes_past_caches_then({1500, 300, 4000, 5600}));            // 16 KiB
  EXPECT_FALSE(goes_past_caches_then({22'300, 37'800, 70'000, 134'000}));  // 1 MiB
  EXPECT_FALSE(goes_past_caches_then({1200, 2100, 2600, 5200}));           // no process reads
}

// The reader does not wait for each copy, or reads it later.
TEST(CopyTuner, TheReadersWaitShowsInTheCycleOrIsAllowedFor) {
  EXPECT_TRUE(goes_past_caches_then({1500, 300, 1950, 850}));  // one after the other
  EXPECT_FALSE(goes_past_caches_then({1500, 300, 50'000, 50'000}));
  EXPECT_TRUE(goes_past_caches_then({7200, 2100, 50'000, 50'000}));
  EXPECT_FALSE(goes_past_caches_then({7200, 2100, 20'000, 25'000}));
}

// The first copy of a row differs from the others, because the copy before left the lines
// elsewhere; and now and then a time contains a disturbance.
TEST(CopyTuner, TheFirstOfARowAndTheLongestDoNotCount) {
  CopyTuner tuner;
  int64_t now_ns = 0;
  for (int i = 0; i < kFirstTrial; ++i) {
    const bool past_caches = tuner.goes_past_caches();
    const int in_row = (i - 16) % 8;
    const bool is_odd = i >= 16 && (in_row == 0 || in_row == 4);
    const int64_t own = past_caches ? 2000 : is_odd ? 90'000 : 1200;
    if (tuner.begins()) tuner.add(now_ns, now_ns + own);
    now_ns += 100'000;
  }
  EXPECT_FALSE(tuner.goes_past_caches());
}

TEST(CopyTuner, TriedEverMoreSeldomWhileItSaysTheSame) {
  // Each trial makes eight copies the slower way, or four if none of three was faster.
  for (const auto& [start, row] :
       {std::pair{World{1200, 2000}, 4}, std::pair{World{30'000, 2000}, 8}}) {
    CopyTuner tuner;
    World world = start;
    for (int i = 0; i < 100'000; ++i) world.copy(tuner);
    EXPECT_LT(std::min(world.past, world.cached), 75 * row);
    EXPECT_GT(std::min(world.past, world.cached), 37 * row);
    EXPECT_LT(world.timed, 13'000);
  }
}

TEST(CopyTuner, ASlowCopyIsNoticedIfItComesTwice) {
  CopyTuner tuner;
  World world{1200, 2000};
  for (int i = 0; i < 20'000; ++i) world.copy(tuner);
  // Until a trial has just ended.
  for (int past = world.past; world.past < past + 4;) world.copy(tuner);
  ASSERT_FALSE(tuner.goes_past_caches());
  // Once.
  const int past = world.past;
  world.cached_ns = 9000;
  for (int timed = world.timed; world.timed == timed;) world.copy(tuner);
  world.cached_ns = 1200;
  for (int i = 0; i < 200; ++i) world.copy(tuner);
  EXPECT_EQ(world.past, past);
  world.cached_ns = 7000;
  EXPECT_LE(world.copies_until(tuner, true, 20, 3000), 100);
}

TEST(CopyTuner, DataNoLongerReadGoesThroughTheCachesAgain) {
  CopyTuner tuner;
  World world{7000, 2000};
  for (int i = 0; i < 20'000; ++i) world.copy(tuner);
  ASSERT_TRUE(tuner.goes_past_caches());
  world.cached_ns = 1200;
  EXPECT_LE(world.copies_until(tuner, false, 20, 3000), 2100);
}

TEST(CopyTuner, AnotherPaceIsNoticed) {
  for (const int64_t cycle_ns : {int64_t{0}, int64_t{500'000}}) {
    CopyTuner tuner;
    World world{25'000, 19'000, 110'000, 54'000};
    for (int i = 0; i < 1000; ++i) world.copy(tuner);
    ASSERT_TRUE(tuner.goes_past_caches());
    const int timed = world.timed;
    world.cached_ns = 11'000;
    world.cached_cycle_ns = world.past_cycle_ns = cycle_ns;
    EXPECT_LE(world.copies_until(tuner, false, 20, 3000), 80);
    EXPECT_LT(world.timed, timed + 40);
  }
}

constexpr auto kLong = CopyTuner::Length::kLong;
// 16 and two rows.
constexpr int kFirstLongTrial = 56;

bool goes_past_caches_if_long(World world) {
  CopyTuner tuner(kLong);
  for (int i = 0; i < kFirstLongTrial; ++i) world.copy(tuner);
  return tuner.goes_past_caches();
}

// Measured on an Intel Xeon (Emerald Rapids).
TEST(CopyTuner, DataLargerThanALevelGoesPastTheCachesUnlessItsReaderWaits) {
  EXPECT_TRUE(goes_past_caches_if_long({285'000, 235'000}));  // 4 MB that no process reads
  EXPECT_TRUE(goes_past_caches_if_long({148'000, 103'000}));  // 2 MB
  EXPECT_FALSE(goes_past_caches_if_long({280'000, 370'000, 560'000, 740'000}));
  EXPECT_FALSE(goes_past_caches_if_long({280'000, 230'000, 560'000, 740'000}));
  EXPECT_FALSE(goes_past_caches_if_long({280'000, 230'000, 9'000'000, 9'000'000}));
}

// Several copies are started before the reader is waited for, which takes longer if they bypass the
// caches.
TEST(CopyTuner, AWaitNowAndThenCountsForAllCopies) {
  for (const int burst : {1, 2, 4, 8}) {
    CopyTuner tuner(kLong);
    World world{285'000, 235'000};
    for (int i = 0; i < kFirstLongTrial; ++i) {
      const bool past_caches = tuner.goes_past_caches();
      world.copy(tuner);
      if (i % burst == burst - 1) world.now_ns += burst * (past_caches ? 310'000 : 150'000);
    }
    EXPECT_FALSE(tuner.goes_past_caches()) << burst;
  }
}

TEST(CopyTuner, ARowEndsWhenItIsHopeless) {
  for (const CopyTuner::Length length : {CopyTuner::Length::kShort, kLong}) {
    CopyTuner tuner(length);
    World world{280'000, 370'000};
    for (int i = 0; i < kFirstLongTrial; ++i) world.copy(tuner);
    EXPECT_EQ(world.past, 4);
  }
  CopyTuner tuner(kLong);
  World world{280'000, 230'000, 560'000, 740'000};  // only its reader waits
  for (int i = 0; i < kFirstLongTrial; ++i) world.copy(tuner);
  EXPECT_EQ(world.past, 10);
}

TEST(CopyTuner, AClearResultIsTriedTwiceAndMoreSeldom) {
  CopyTuner tuner;
  World world{2000, 16'000};
  int in_all = 0;
  for (const int pause : {16, 64, 256, 1024, 2048, 2048}) {
    for (int i = 0; i < pause + 8 + 2; ++i) world.copy(tuner);
    EXPECT_EQ(world.past, in_all += 2) << pause;
  }
  EXPECT_FALSE(tuner.goes_past_caches());
}

// One of the first copies was slow for another reason.
TEST(CopyTuner, ASlowCopyDoesNotMakeARowHopeless) {
  CopyTuner tuner;
  World world{7200, 2100, 16'800, 10'800};
  for (int i = 0; i < kFirstTrial; ++i) {
    world.past_ns = world.past < 3 ? 20'000 : 2100;
    world.copy(tuner);
  }
  EXPECT_EQ(world.past, 8);
}

TEST(CopyTuner, AnotherPaceOfLongOnesIsNoticed) {
  CopyTuner tuner(kLong);
  World world{285'000, 235'000};
  for (int i = 0; i < 20'000; ++i) world.copy(tuner);
  ASSERT_TRUE(tuner.goes_past_caches());
  world = {280'000, 370'000, 560'000, 740'000};
  EXPECT_LE(world.copies_until(tuner, false, 20, 3000), 140);
  for (int i = 0; i < 20'000; ++i) world.copy(tuner);
  world = {285'000, 235'000};
  EXPECT_LE(world.copies_until(tuner, true, 20, 3000), 160);
}

// Trials cost no more than a twentieth, however often the pace changes.
TEST(CopyTuner, ChangesOfPaceDoNotCostMuch) {
  CopyTuner tuner;
  World world{30'000, 2000, 32'000, 5000};
  for (int i = 0; i < 100'000; ++i) {
    world.past_cycle_ns = i / 40 % 2 == 0 ? 5000 : 15'000;
    world.copy(tuner);
  }
  EXPECT_GT(world.past, 98'000);
  EXPECT_GT(world.cached, 500);
}

}  // namespace
}  // namespace mobius::transport
