// SPDX-License-Identifier: BSD-3-Clause

// Whoever changes what a process waits for rings that process' sleepers. A wait looks at its
// condition now and then in any case, so a ring that is forgotten costs time and fails no other
// test.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "engine/common/peers.h"
#include "engine/progress/counters.h"
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

}  // namespace
}  // namespace mobius::engine
