// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/adaptive_spin.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mobius::engine {
namespace {

constexpr uint64_t kSpinNs = 100'000;
constexpr uint64_t kLookNs = 1'000;

// A thread that spins until it finds the work that comes at `comes`, or sleeps. Returns how long it
// has spun, and sets `now` to the time when it has found the work.
uint64_t serve(AdaptiveSpin& eagerness, uint64_t* now, uint64_t comes) {
  const uint64_t begin = *now;
  uint64_t end = begin;
  while (*now < comes && eagerness.looks_again(*now)) {
    end = *now;
    *now += kLookNs;
  }
  *now = std::max(*now, comes);
  eagerness.note_found();
  return end - begin;
}

// Work comes `times` times, each `every` after the last; returns how long the thread spins in all.
uint64_t serve(AdaptiveSpin& eagerness, uint64_t* now, int times, uint64_t every) {
  uint64_t looked = 0;
  for (int i = 0; i < times; ++i) looked += serve(eagerness, now, *now + every);
  return looked;
}

TEST(AdaptiveSpin, AnEventThatComesSoonIsFoundAwake) {
  AdaptiveSpin eagerness(kSpinNs);
  uint64_t now = 1;
  EXPECT_EQ(serve(eagerness, &now, 1000, 10 * kLookNs), 1000 * 9 * kLookNs);
}

TEST(AdaptiveSpin, LooksEverMoreSeldomInVain) {
  AdaptiveSpin eagerness(kSpinNs);
  uint64_t now = 1;
  // At the 1st, 2nd, 4th, 8th … piece of work.
  EXPECT_LE(serve(eagerness, &now, 127, 2 * kSpinNs), 7 * kSpinNs);
  EXPECT_GE(serve(eagerness, &now, 1280, 2 * kSpinNs), 9 * kSpinNs);
  EXPECT_LE(serve(eagerness, &now, 1280, 2 * kSpinNs), 11 * kSpinNs);
}

TEST(AdaptiveSpin, IsItselfAgainOnceSomethingCame) {
  AdaptiveSpin eagerness(kSpinNs);
  uint64_t now = 1;
  static_cast<void>(serve(eagerness, &now, 1000, 2 * kSpinNs));
  static_cast<void>(serve(eagerness, &now, 128, 10 * kLookNs));
  EXPECT_EQ(serve(eagerness, &now, 100, 10 * kLookNs), 100 * 9 * kLookNs);
}

TEST(AdaptiveSpin, SleepsWhereItWasInterrupted) {
  AdaptiveSpin eagerness(kSpinNs);
  EXPECT_TRUE(eagerness.looks_again(1'000));
  EXPECT_FALSE(eagerness.looks_again(5'000'000));
  EXPECT_FALSE(eagerness.looks_again(5'001'000));
  EXPECT_TRUE(eagerness.looks_again(60'000'000));
}

TEST(AdaptiveSpin, IsNotInterruptedByTheThreadItself) {
  AdaptiveSpin eagerness(kSpinNs);
  EXPECT_TRUE(eagerness.looks_again(1'000));
  eagerness.note_left();
  EXPECT_TRUE(eagerness.looks_again(5'000'000));
}

TEST(AdaptiveSpin, NeverLooksWhereNoProcessorIsFree) {
  AdaptiveSpin eagerness(0);
  EXPECT_FALSE(eagerness.looks_again(1'000));
}

}  // namespace
}  // namespace mobius::engine
