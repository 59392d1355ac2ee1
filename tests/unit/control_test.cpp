// SPDX-License-Identifier: BSD-3-Clause
#include "job/control.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "job/host_group.h"
#include "os/memory/memfd.h"

namespace mobius::job {
namespace {

TEST(Control, MapsTheCreatedSegment) {
  int fd = -1;
  ASSERT_EQ(control_create(3, &fd), MOB_OK);
  ControlBlock* block = nullptr;
  ASSERT_EQ(control_map(fd, &block), MOB_OK);
  EXPECT_EQ(block->header.size, 3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&block->slot(2)) % 64, 0u);
  control_unmap(block);
  close(fd);
}

TEST(Control, RefusesOtherVersionsAndShortFiles) {
  int fd = -1;
  ASSERT_EQ(control_create(1, &fd), MOB_OK);
  const uint32_t version = kControlVersion + 1;
  ASSERT_EQ(pwrite(fd, &version, sizeof version, offsetof(ControlHeader, version)), 4);
  ControlBlock* block = nullptr;
  EXPECT_EQ(control_map(fd, &block), MOB_ERR_SYSTEM);
  EXPECT_NE(std::string(mob_last_error()).find("another version"), std::string::npos);
  close(fd);
  ASSERT_EQ(os::memfd_create_sized("short", 16, &fd), MOB_OK);
  EXPECT_EQ(control_map(fd, &block), MOB_ERR_SYSTEM);
  close(fd);
  EXPECT_EQ(block, nullptr);
}

TEST(Control, RefusesASizeThatDoesNotFit) {
  int fd = -1;
  ASSERT_EQ(control_create(1, &fd), MOB_OK);
  const int32_t size = kMostLocalPeers + 1;
  ASSERT_EQ(pwrite(fd, &size, sizeof size, offsetof(ControlHeader, size)), 4);
  ControlBlock* block = nullptr;
  EXPECT_EQ(control_map(fd, &block), MOB_ERR_SYSTEM);
  close(fd);
}

// A group whose processes are threads of this one, each with a mapping of its own.
class ThreadedGroup : public testing::TestWithParam<int> {
 protected:
  template <typename Body>
  void run(Body body) {
    const int size = GetParam();
    int fd = -1;
    ASSERT_EQ(control_create(size, &fd), MOB_OK);
    std::vector<std::thread> threads;
    for (int i = 0; i < size; ++i) {
      threads.emplace_back([&, i] {
        HostGroup group;
        ASSERT_EQ(group.open(dup(fd), i), MOB_OK) << mob_last_error();
        group.set_policy({.spin_ns = 1000, .yields = 2});
        ASSERT_EQ(group.barrier(), MOB_OK);
        body(group);
        ASSERT_EQ(group.barrier(), MOB_OK);
      });
    }
    for (auto& thread : threads) thread.join();
    close(fd);
  }
};

TEST_P(ThreadedGroup, BarrierSeparatesPhases) {
  constexpr int kPhases = 300;
  // Atomic only for ThreadSanitizer, which cannot know that two mappings of the block are the same
  // memory.
  std::vector<std::atomic<int>> phase(static_cast<size_t>(GetParam()));
  run([&](HostGroup& group) {
    const auto me = static_cast<size_t>(group.index());
    for (int p = 1; p <= kPhases; ++p) {
      phase[me].store(p, std::memory_order_relaxed);
      ASSERT_EQ(group.barrier(), MOB_OK);
      for (const auto& other : phase) ASSERT_EQ(other.load(std::memory_order_relaxed), p);
      ASSERT_EQ(group.barrier(), MOB_OK);
    }
  });
}

TEST_P(ThreadedGroup, ExchangeGivesEveryValueToEveryone) {
  run([&](HostGroup& group) {
    for (int round = 0; round < 100; ++round) {
      std::vector<int> all;
      ASSERT_EQ(group.exchange(group.index() * 1000 + round, &all), MOB_OK);
      ASSERT_EQ(all.size(), static_cast<size_t>(group.size()));
      for (int i = 0; i < group.size(); ++i) {
        ASSERT_EQ(all[static_cast<size_t>(i)], i * 1000 + round);
      }
    }
  });
}

TEST_P(ThreadedGroup, AgreeFailsEverywhereWhenOneFails) {
  run([&](HostGroup& group) {
    EXPECT_EQ(group.agree(MOB_OK, "step"), MOB_OK);
    const bool failing = group.index() == group.size() - 1;
    const mob_status_t status = group.agree(failing ? MOB_ERR_MEMORY : MOB_OK, "step");
    EXPECT_EQ(status, failing ? MOB_ERR_MEMORY : MOB_ERR_PEER);
    if (!failing) {
      EXPECT_NE(std::string(mob_last_error()).find("MOB_ERR_MEMORY"), std::string::npos);
    }
  });
}

// As a process sees it that the first and only process of the job has spawned.
TEST(Worlds, ConnectProcessesThatHaveJoinedAndNoOtherNumbers) {
  int fd = -1;
  ASSERT_EQ(control_create(1, &fd), MOB_OK);
  ASSERT_EQ(control_reserve(fd, 1, 4), MOB_OK);
  ControlBlock* block = nullptr;
  ASSERT_EQ(control_map(fd, &block), MOB_OK);
  const auto spawn = [&](mob_rank_t first, mob_rank_t parent, WorldState state) {
    block->slot(first).world = first;
    World& world = block->world(first);
    world.size = 1;
    world.parent = parent;
    world.is_connected.store(1);
    world.state.store(state);
  };
  spawn(1, 0, WorldState::kJoined);
  HostGroup group;
  ASSERT_EQ(group.open(dup(fd), 1), MOB_OK) << mob_last_error();
  EXPECT_TRUE(group.is_connected(0));
  EXPECT_TRUE(group.is_connected(1));
  // Given out, and nothing else is known yet. Whoever gave it out may die at this point.
  block->header.numbers.store(4);
  EXPECT_FALSE(group.is_connected(2));
  spawn(2, 1, WorldState::kStarted);
  EXPECT_FALSE(group.is_connected(2));
  spawn(2, 1, WorldState::kJoined);
  EXPECT_TRUE(group.is_connected(2));
  block->slot(3).world = 2;  // could not be started
  EXPECT_FALSE(group.is_connected(3));
  block->world(1).is_connected.store(0);
  EXPECT_FALSE(group.is_connected(0));
  EXPECT_TRUE(group.is_connected(2));
  group.close();
  control_unmap(block);
  close(fd);
}

TEST(Worlds, ChangeTheirStateOnce) {
  World world{};
  EXPECT_TRUE(change_state(world, WorldState::kNone, WorldState::kAsked));
  EXPECT_FALSE(change_state(world, WorldState::kNone, WorldState::kFailed));
  EXPECT_EQ(world.state.load(), WorldState::kAsked);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadedGroup, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace mobius::job
