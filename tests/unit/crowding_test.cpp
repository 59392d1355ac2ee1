// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/crowding.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "os/cpu/scheduling.h"
#include "os/sync/futex.h"

namespace mobius::os {
namespace {

constexpr uint64_t kMs = 1'050'000;  // a little more than a step

cpu_set_t set_of(std::initializer_list<int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  return set;
}

struct Processes {
  Crowding::Place places[4] = {};

  void open(Crowding* crowding, uint32_t own) { crowding->open(places, sizeof places[0], 4, own); }
  void say(uint32_t index, int processor, uint64_t now) {
    places[index] = Crowding::place_of(processor, now);
  }
};

TEST(Crowding, TheLaterOneLeavesForAProcessorThatNobodyUses) {
  Processes processes;
  Crowding first;
  Crowding last;
  processes.open(&first, 0);
  processes.open(&last, 3);
  const uint64_t now = 1000 * kMs;
  const cpu_set_t all = set_of({0, 1, 2, 3});
  EXPECT_EQ(last.better_than(1, all, now), -1);  // no process has a place yet
  processes.say(0, 1, now);
  processes.say(3, 1, now);
  EXPECT_EQ(first.better_than(1, all, now), -1);
  EXPECT_EQ(last.better_than(1, all, now), 2);
  EXPECT_EQ(last.better_than(2, all, now), -1);  // it shares this processor with none
  processes.say(1, 2, now - 100 * kMs);          // it may still be there
  EXPECT_EQ(last.better_than(1, all, now), 3);
  EXPECT_EQ(last.better_than(1, set_of({0, 1, 2}), now), 0);
  EXPECT_EQ(last.better_than(1, set_of({1, 2}), now), -1);
  EXPECT_EQ(last.better_than(1, set_of({1}), now), -1);
}

// A process that is in two jobs waits for the processes of both.
TEST(Crowding, AProcessInTwoGroupsLooksAtBoth) {
  Processes home;
  Processes other;
  Crowding here;
  Crowding there;
  home.open(&here, 0);
  other.open(&there, 2);
  const uint64_t now = 1000 * kMs;
  const cpu_set_t all = set_of({0, 1, 2});
  other.say(0, 1, now);
  home.say(1, 2, now);
  EXPECT_EQ(here.better_than(1, all, now), -1);
  here.link(there);
  EXPECT_EQ(here.better_than(1, all, now), 0);
  here.unlink(there);
  EXPECT_EQ(here.better_than(1, all, now), -1);
  there.set_count(0);
  EXPECT_EQ(there.better_than(1, all, now), -1);
}

TEST(Crowding, AnOldPlaceIsNoReasonToLeave) {
  Processes processes;
  Crowding last;
  processes.open(&last, 3);
  const cpu_set_t all = set_of({0, 1});
  // Also where the times of places wrap.
  for (const uint64_t said : {1000 * kMs, (uint64_t{1} << 42) - kMs}) {
    processes.say(0, 1, said);
    EXPECT_EQ(last.better_than(1, all, said), 0);
    EXPECT_EQ(last.better_than(1, all, said + 2 * kMs), 0);
    EXPECT_EQ(last.better_than(1, all, said + 10 * kMs), -1);
  }
  processes.say(0, 5000, 1000 * kMs);  // more than a place has room for, so it is not recorded
  EXPECT_EQ(processes.places[0].load(), 0u);
}

TEST(Crowding, AMovedThreadMayGoWhereItMightBefore) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    move_to_processor(processor, allowed);
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&after, &allowed)) << processor;
  }
}

// Two processes that wait for each other by yielding start on one processor. Wherever the kernel
// puts them, both may still run on all their processors, and both finish.
TEST(Crowding, ALeavingThreadMayGoWhereItMightBefore) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  Processes processes;
  std::atomic<uint32_t> turn = 0;
  const auto play = [&](uint32_t own) {
    move_to_processor(own_processor(), allowed);
    Crowding crowding;
    processes.open(&crowding, own);
    for (uint32_t i = 0; i < 300; ++i) {
      while (turn.load() != 2 * i + own) crowding.yield();
      for (const uint64_t end = now_ns() + 20'000; now_ns() < end;) {
      }
      turn.fetch_add(1);
    }
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), 600u);
}

}  // namespace
}  // namespace mobius::os
