// SPDX-License-Identifier: BSD-3-Clause

// Whoever changes what a process waits for rings that process' sleepers. A wait looks at its
// condition now and then in any case, so a ring that is forgotten costs time and fails no other
// test. Who should have rung may have died.

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "engine/common/peers.h"
#include "engine/progress/counters.h"
#include "engine/progress/progress.h"
#include "engine/progress/waiter.h"
#include "engine/remote/remote_locks.h"
#include "engine/segment/segment.h"
#include "fake_job.h"

namespace mobius::engine {
namespace {

// Two processes of a host; this is rank 0, and rank 1 sleeps.
class WakeUp : public testing::Test {
 protected:
  void SetUp() override {
    give_memory(segment_, 2);
    bell().sleepers.store(1);
    before_ = bell().bell.load();
  }
  ProcessBlock::Doorbell& bell() { return segment_.doorbell(1); }
  uint32_t rings() { return bell().bell.load() - before_; }

  FakeReports reports_;
  NothingRemapped remapped_;
  Peers peers_{reports_};
  Segment segment_{peers_, remapped_};
  FakeWaiter waiter_{peers_, segment_};
  uint32_t before_ = 0;
};

TEST_F(WakeUp, OfWhoWaitsForACounter) {
  Counters counters(segment_, waiter_);
  mob_counter counter{};
  counters.count(1, counter, 3);
  EXPECT_EQ(counter.value.load(), 3u);
  EXPECT_EQ(rings(), 1u);
}

TEST_F(WakeUp, OfTheHostOfALockThatOtherHostsWaitFor) {
  RemoteLocks::released(segment_, 1);
  EXPECT_EQ(rings(), 0u);
  bell().claims.store(1);
  RemoteLocks::released(segment_, 1);
  EXPECT_EQ(rings(), 1u);
}

class NoNetwork final : public NetworkServer {
 public:
  bool is_serving() const override { return false; }
  void settle_all() override {}
  void wake() override {}
};

class NoEntry final : public ThreadEntry {
 public:
  void enter() override {}
};

// One request is there at a time.
class Requested final : public Waiter {
 public:
  using Waiter::Waiter;
  void issue_recorded() override {}
  bool poll() override {
    const bool found = is_requested.exchange(false);
    ++polls;
    return found;
  }

  std::atomic<bool> is_requested = false;
  std::atomic<int> polls = 0;

 private:
  Start start() override { return Start::kServe; }
  mob_status_t wait_long(Condition, os::Watch*, os::Wakeup) override { return MOB_ERR_STATE; }
};

// A requester that was killed after it had taken on to wake the progress thread, and before it did.
// Nobody else wakes the thread then.
TEST_F(WakeUp, OfAProgressThreadWhoseRequesterHasDied) {
  NoNetwork network;
  NoEntry entry;
  Requested requests(peers_, segment_);
  Progress progress(requests, network, entry);
  ProcessBlock::Doorbell& doorbell = segment_.doorbell(0);
  progress.open(doorbell, base::ProgressMode::kThread);
  ASSERT_EQ(progress.require(), MOB_OK);
  while (requests.polls.load() < 2) sched_yield();  // the second one is the last before it sleeps
  EXPECT_NE(doorbell.attention.load(), 0u);
  doorbell.attention.store(0);
  requests.is_requested.store(true);
  Progress::wake(doorbell);
  while (requests.is_requested.load()) sched_yield();
  progress.stop();
}

}  // namespace
}  // namespace mobius::engine
