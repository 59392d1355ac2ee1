// SPDX-License-Identifier: BSD-3-Clause
#include "job/liveness.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "job/control.h"
#include "job/host_group.h"
#include "os/process/process.h"
#include "os/sync/futex.h"
#include "shared_processes.h"

namespace {

using mobius::job::ControlBlock;
using mobius::job::declare_dead;
using mobius::job::Liveness;
using mobius::job::ProcessSlot;
using mobius::job::ProcessState;
using mobius_test::Children;

bool sleep_for_ever() {
  while (true) pause();
}

// A control block of three processes: this one, a child, and one that has not joined.
class LivenessTest : public testing::Test {
 protected:
  LivenessTest() {
    EXPECT_EQ(mobius::job::control_create(3, &descriptor_), MOB_OK);
    EXPECT_EQ(mobius::job::control_map(descriptor_, &block_), MOB_OK);
    fill(0, getpid());
    child_ = children_.start(sleep_for_ever);
    fill(1, child_);
    liveness_.open(*block_, 3, 0);
  }
  ~LivenessTest() override {
    mobius::job::control_unmap(block_);
    close(descriptor_);
  }

  void fill(mob_rank_t index, pid_t pid) {
    ProcessSlot& slot = block_->slot(index);
    slot.pid.store(pid);
    slot.start_time.store(mobius::os::process_start_time(pid));
    slot.state.store(ProcessState::kLive);
  }
  // Also if the last check was a moment ago.
  bool is_dead_in_time(mob_rank_t index) {
    const uint64_t end = mobius::os::now_ns() + 60'000'000'000;
    while (mobius::os::now_ns() < end) {
      if (liveness_.is_dead(index)) return true;
    }
    return false;
  }
  ProcessState state(mob_rank_t index) { return block_->slot(index).state.load(); }

  int descriptor_ = -1;
  ControlBlock* block_ = nullptr;
  Children children_;
  pid_t child_ = -1;
  Liveness liveness_;
};

TEST_F(LivenessTest, NobodyIsDeadAtFirst) {
  for (mob_rank_t index = 0; index < 3; ++index) {
    EXPECT_FALSE(liveness_.is_dead(index));
    EXPECT_FALSE(liveness_.is_leaving(index));
    EXPECT_FALSE(liveness_.has_left(index));
  }
}

TEST_F(LivenessTest, AProcessThatFindsADeathTellsAll) {
  EXPECT_FALSE(liveness_.is_dead(1));
  children_.kill_one(child_);
  EXPECT_TRUE(is_dead_in_time(1));
  EXPECT_EQ(state(1), ProcessState::kDead);
  EXPECT_TRUE(liveness_.is_dead(1));
}

TEST_F(LivenessTest, DeathOfOneThatWasLeaving) {
  block_->slot(1).state.store(ProcessState::kLeaving);
  EXPECT_FALSE(liveness_.is_dead(1));
  EXPECT_TRUE(liveness_.is_leaving(1));
  EXPECT_FALSE(liveness_.has_left(1));
  children_.kill_one(child_);
  EXPECT_TRUE(is_dead_in_time(1));
}

TEST_F(LivenessTest, AProcessThatLeftIsNotDead) {
  block_->slot(1).state.store(ProcessState::kLeft);
  children_.kill_one(child_);
  EXPECT_FALSE(liveness_.is_dead(1));
  EXPECT_TRUE(liveness_.has_left(1));
  EXPECT_TRUE(liveness_.is_leaving(1));
  EXPECT_FALSE(declare_dead(block_->slot(1)));
  EXPECT_EQ(state(1), ProcessState::kLeft);
}

TEST_F(LivenessTest, DeclaredByAnother) {
  EXPECT_TRUE(declare_dead(block_->slot(1)));
  EXPECT_TRUE(declare_dead(block_->slot(2)));  // before it joined
  EXPECT_TRUE(liveness_.is_dead(1));
  EXPECT_TRUE(liveness_.is_dead(2));
}

TEST_F(LivenessTest, ProcessesThatCannotBeLookedUpAreLeftToTheLauncher) {
  block_->slot(1).start_time.store(0);
  children_.kill_one(child_);
  EXPECT_FALSE(liveness_.is_dead(1));
  EXPECT_TRUE(declare_dead(block_->slot(1)));
  EXPECT_TRUE(liveness_.is_dead(1));
}

TEST_F(LivenessTest, GroupGivesUpWithoutADeadMember) {
  const uint64_t generation = block_->barrier.generation.load();
  fill(2, child_);
  children_.kill_one(child_);
  mobius::job::HostGroup group;
  ASSERT_EQ(group.open(dup(descriptor_), 0), MOB_OK) << mob_last_error();
  std::vector<int> all;
  EXPECT_EQ(group.exchange(1, &all), MOB_ERR_PEER);
  EXPECT_EQ(block_->barrier.generation.load(), generation);
}

}  // namespace
