// SPDX-License-Identifier: BSD-3-Clause
#include "os/cpu/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <initializer_list>
#include <thread>

namespace mobius::os {
namespace {

ProcessorSet set_of(std::initializer_list<size_t> processors) {
  ProcessorSet result{};
  for (const size_t each : processors) result.add(each);
  return result;
}

TEST(Topology, AllowedIsWhatTheCallingThreadMayUse) {
  const ProcessorSet before = ProcessorSet::allowed();
  ASSERT_GE(before.count(), 1);
  EXPECT_EQ(before.count(), processors_allowed());
  std::thread bound([] {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    size_t last = 0;
    for (size_t i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &mine)) last = i;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const ProcessorSet set = ProcessorSet::allowed();
    EXPECT_EQ(set.count(), 1);
    EXPECT_EQ(set.words[last / 64], uint64_t{1} << last % 64);
  });
  bound.join();
  EXPECT_EQ(processors_allowed(), before.count());
}

TEST(Topology, RoomIsWhatAllTogetherHave) {
  const ProcessorSet all = set_of({0, 1, 2, 3});
  EXPECT_EQ(room_for({all}), Room::kSpare);
  EXPECT_EQ(room_for({all, all, all, all}), Room::kOneEach);
  EXPECT_EQ(room_for({all, all, all, all, all}), Room::kCrowded);
}

TEST(Topology, BoundProcessesHaveRoomIfTheyAreNotBoundToTheSame) {
  EXPECT_EQ(room_for({set_of({0}), set_of({1})}), Room::kOneEach);
  EXPECT_EQ(room_for({set_of({70}), set_of({6})}), Room::kOneEach);
  EXPECT_EQ(room_for({set_of({1}), set_of({1})}), Room::kCrowded);
  EXPECT_EQ(room_for({set_of({0, 1}), set_of({2, 3})}), Room::kSpare);
  // A process with only one processor is placed first, wherever it stands.
  EXPECT_EQ(room_for({set_of({0, 1}), set_of({0})}), Room::kOneEach);
  EXPECT_EQ(room_for({set_of({0, 1, 2}), set_of({1}), set_of({0})}), Room::kOneEach);
  EXPECT_EQ(room_for({set_of({0, 1, 2, 3}), set_of({0}), set_of({0})}), Room::kCrowded);
}

TEST(Topology, SetsOverlapWhereTheyHaveOneInCommon) {
  EXPECT_TRUE(set_of({1, 70}).overlaps(set_of({70, 2})));
  EXPECT_FALSE(set_of({1, 70}).overlaps(set_of({6, 71})));
  EXPECT_FALSE(ProcessorSet{}.overlaps(set_of({0})));
}

TEST(Topology, ProcessorsBeyondTheLargestNumberAreOthersToo) {
  EXPECT_EQ(set_of({ProcessorSet::kMost}).count(), 1);
  EXPECT_EQ(room_for({set_of({ProcessorSet::kMost + 1}), set_of({0})}), Room::kOneEach);
}

}  // namespace
}  // namespace mobius::os
