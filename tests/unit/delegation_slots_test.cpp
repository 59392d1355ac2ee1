// SPDX-License-Identifier: BSD-3-Clause

// Delegation where one side does what a live rank does not do when it is wanted: it dies with a
// request, leaves, takes a request and does not answer, or does not look. Three ranks on one host,
// without a job; the tests write to the shared slots in the place of the missing ones.

#include "engine/rma/delegation_slots.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/settings.h"
#include "engine/progress/counters.h"
#include "engine/progress/progress.h"
#include "engine/rma/completion_signals.h"
#include "engine/rma/delegation.h"
#include "engine/rma/local_execute.h"
#include "engine/segment/window/local_heap.h"
#include "fake_job.h"
#include "job/control.h"

namespace mobius::engine {
namespace {

constexpr mob_rank_t kOrigin = 0;
constexpr mob_rank_t kTarget = 1;
constexpr mob_rank_t kOther = 2;
constexpr mob_rank_t kRanks = 3;

struct Side {
  FakeReports reports;
  NothingRemapped remapped;
  Peers peers{reports};
  Segment segment{peers, remapped};
  FakeWaiter waiter{peers, segment};
  LocalHeap local_heap{segment};
  Counters counters{segment, waiter};
  CompletionSignals signals{segment, waiter, counters, untouched<Exposures>()};
  LocalExecutor executor{segment, signals};
  Delegation delegation{segment, local_heap, executor};
};

class DelegationSlotsOf : public testing::Test {
 protected:
  DelegationSlotsOf() {
    const char* const environment[] = {"MOBIUS_SPIN_NS=1000000", "MOBIUS_WINDOW_BYTES=64M",
                                       nullptr};
    check(settings_.load(environment));
    check(job::control_create(kRanks, &descriptor_));
    check(job::control_map(descriptor_, &control_));
    auto window = std::make_shared<Window>();
    SegmentLayout layout;
    for (mob_rank_t rank = 0; rank < kRanks; ++rank) {
      Side& side = sides_[rank];
      check(side.peers.job().join_threads(settings_, descriptor_, *control_, rank));
      if (rank == 0) {
        check(window->open_for_threads(side.peers.host(), settings_));
        check(layout.map(descriptor_, window->bytes() >> kChunkShift));
      }
      check(SegmentLayout::reserve(descriptor_, rank));
      side.segment.adopt(window, layout);
      side.segment.open_chunks();
      side.delegation.open(side.segment.own_process());
    }
    check(target().require());
    const uint64_t offset = block().delegation_slots.load() - 1;
    slots_ = static_cast<DelegationSlots*>(sides_[kTarget].segment.local_address(offset));
    block().doorbell.attention.store(1);  // a thread of the target waits
  }

  ~DelegationSlotsOf() override {
    for (Side& side : sides_) {
      side.segment.close();
      side.peers.job().abandon();
    }
    job::control_unmap(control_);
    close(descriptor_);
  }

  static void check(mob_status_t status) { ASSERT_EQ(status, MOB_OK) << mob_last_error(); }

  Delegation& origin() { return sides_[kOrigin].delegation; }
  Delegation& target() { return sides_[kTarget].delegation; }
  Side& sides(mob_rank_t rank) { return sides_[rank]; }
  ProcessBlock& block() { return sides_[kTarget].segment.own_process(); }
  DelegationSlots& slots() { return *slots_; }
  Request& request() { return slots_->requests[0]; }
  // How many requests were ever posted in the first slot.
  uint64_t posted() { return number_of(request().state.load()); }
  void let_die(mob_rank_t rank) { control_->slot(rank).state.store(job::ProcessState::kDead); }

  bool put(uint64_t* to, uint64_t value) {
    return origin().copy(kTarget, reinterpret_cast<uintptr_t>(to), &value, sizeof value, true);
  }
  // Puts until the target, which serves in a thread of its own, was quick enough.
  void put_served(uint64_t* to, uint64_t value) {
    std::atomic<bool> done = false;
    std::thread server([&] {
      while (!done.load()) target().serve();
    });
    while (!put(to, value)) {
    }
    done.store(true);
    server.join();
  }

 private:
  base::Settings settings_;
  int descriptor_ = -1;
  job::ControlBlock* control_ = nullptr;
  Side sides_[kRanks];
  DelegationSlots* slots_ = nullptr;
};

TEST_F(DelegationSlotsOf, ARequestThatNobodyTakesIsNeverCarriedOut) {
  uint64_t word = 5;
  uint64_t value = 6;
  transport::Shape shape;
  shape.total_bytes = shape.run_bytes = sizeof value;
  shape.remote = reinterpret_cast<char*>(&word);
  shape.local = reinterpret_cast<char*>(&value);
  for (const bool moves : {false, true}) {
    if (moves) {
      EXPECT_EQ(origin().move(kTarget, shape, true, true), Delegation::Outcome::kNobodyCame);
    } else {
      EXPECT_FALSE(put(&word, value));
    }
    EXPECT_EQ(phase_of(request().state.load()), kWithdrawn);
    EXPECT_EQ(target().serve(), os::Work::kNone);
    EXPECT_EQ(word, 5u);
    EXPECT_EQ(slots().holder.load(), 0u);
  }
}

// Only few requests are tried while no thread of the target takes any.
TEST_F(DelegationSlotsOf, AnOriginThatFindsNobodyTriesLessAndLess) {
  uint64_t word = 5;
  size_t tries = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!origin().is_attended(kTarget)) continue;
    ++tries;
    EXPECT_FALSE(put(&word, 6));
  }
  EXPECT_EQ(posted(), tries);
  EXPECT_GE(tries, 1u);
  EXPECT_LE(tries, 60u);
  put_served(&word, 7);
  EXPECT_EQ(word, 7u);
}

TEST_F(DelegationSlotsOf, SlotsOfALivingOriginAreLeftAlone) {
  uint64_t word = 5;
  slots().holder.store(kOther + 1);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(put(&word, 6));
  EXPECT_EQ(slots().holder.load(), static_cast<uint32_t>(kOther) + 1);
  EXPECT_EQ(posted(), 0u);
}

// It died with a request that nobody had taken: that is withdrawn, and the next origin goes on.
TEST_F(DelegationSlotsOf, SlotsOfADeadOriginAreTakenOver) {
  uint64_t word = 5;
  uint64_t of_the_dead = 8;
  request().remote = reinterpret_cast<uintptr_t>(&of_the_dead);
  request().bytes = 8;
  request().what = kRange;
  request().is_put = true;
  request().state.store(state_of(41, kPosted));
  slots().holder.store(kOther + 1);
  let_die(kOther);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(put(&word, 6));  // nobody serves
  EXPECT_EQ(slots().holder.load(), 0u);
  EXPECT_GT(posted(), 41u);
  put_served(&word, 7);
  EXPECT_EQ(word, 7u);
  EXPECT_EQ(of_the_dead, 8u);
}

// The target may still read or write the slots for the dead origin.
TEST_F(DelegationSlotsOf, ARequestOfADeadOriginThatIsBeingCarriedOutIsNotOverwritten) {
  uint64_t word = 5;
  request().bytes = 1234;
  request().state.store(state_of(41, kTakenUp));
  slots().holder.store(kOther + 1);
  let_die(kOther);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(put(&word, 6));
  EXPECT_EQ(request().bytes, 1234u);
  EXPECT_EQ(request().state.load(), state_of(41, kTakenUp));
  request().answer.store(uint64_t{41} << 1 | kDone);
  put_served(&word, 7);
  EXPECT_EQ(word, 7u);
}

TEST_F(DelegationSlotsOf, ATargetThatDiesWithARequestEndsTheWait) {
  uint64_t word = 5;
  std::thread dying([&] {
    uint64_t state = 0;
    while (phase_of(state) != kPosted ||
           !request().state.compare_exchange_strong(state, state_of(number_of(state), kTakenUp))) {
      state = request().state.load();
    }
    let_die(kTarget);
  });
  while (number_of(request().state.load()) == 0 || phase_of(request().state.load()) != kTakenUp) {
    EXPECT_FALSE(put(&word, 6));
  }
  dying.join();
  EXPECT_EQ(word, 5u);
  EXPECT_FALSE(put(&word, 6));  // the slot stays the dead target's
}

// Each is carried out once if it was done, and never if not, however often the target looks away.
TEST_F(DelegationSlotsOf, WithdrawnAndDoneRequestsAddUp) {
  uint64_t word = 0;
  uint64_t one = 1;
  std::atomic<bool> ended = false;
  std::thread server([&] {
    for (unsigned i = 0; !ended.load(); ++i) {
      target().serve();
      for (volatile unsigned spin = i % 1500; spin != 0;) spin = spin - 1;
      if (i % 16 == 0) std::this_thread::yield();
    }
  });
  mob_transfer_t transfer{};
  transfer.kind = MOB_ACCUMULATE;
  transfer.rank = kTarget;
  transfer.remote = &word;
  transfer.local = &one;
  transfer.bytes = sizeof one;
  transfer.type = MOB_UINT64;
  transfer.op = MOB_SUM;
  transport::Shape shape;
  ASSERT_EQ(transport::normalise("the test", transfer, &shape), MOB_OK);
  uint64_t done = 0;
  for (int i = 0; i < 2000 || (done == 0 && i < 1'000'000); ++i) {
    if (origin().combine(transfer, shape) == Delegation::Outcome::kDone) ++done;
  }
  ended.store(true);
  server.join();
  target().serve();
  EXPECT_GT(done, 0u);
  EXPECT_EQ(word, done);
}

// A transfer in pieces that the target stops to serve: what is left is withdrawn from all slots.
TEST_F(DelegationSlotsOf, PiecesThatNobodyTakesAreWithdrawnFromAllSlots) {
  const std::vector<unsigned char> data(10 * Delegation::kPieceBytes, 1);
  std::vector<unsigned char> memory(data.size());
  const auto at = reinterpret_cast<uintptr_t>(memory.data());
  EXPECT_FALSE(origin().copy(kTarget, at, data.data(), data.size(), true));
  EXPECT_EQ(slots().holder.load(), 0u);
  for (const Request& each : slots().requests) {
    EXPECT_EQ(phase_of(each.state.load()), kWithdrawn);
  }
  EXPECT_EQ(target().serve(), os::Work::kNone);
  EXPECT_EQ(std::ranges::count(memory, 0), std::ssize(memory));
}

TEST_F(DelegationSlotsOf, ASleepingTargetIsWokenNowAndThen) {
  block().doorbell.sleepers.store(1);
  const uint32_t bell = block().doorbell.bell.load();
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(origin().is_attended(kTarget));
  EXPECT_EQ(block().doorbell.bell.load(), bell);
  // Only many in a short time wake it, and this thread may lose its processor meanwhile.
  while (block().doorbell.bell.load() == bell) EXPECT_FALSE(origin().is_attended(kTarget));
  EXPECT_NE(request().wanted_by.load(), 0u);
  block().doorbell.sleepers.store(0);
  EXPECT_EQ(posted(), 0u);  // small requests are not worth a call
  EXPECT_NE(target().serve(), os::Work::kNone);
  EXPECT_EQ(request().wanted_by.load(), 0u);
}

TEST_F(DelegationSlotsOf, ATargetOnTheOriginsProcessorIsNotAsked) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  block().doorbell.processor.store(this_processor());
  EXPECT_FALSE(origin().is_attended(kTarget));
  block().doorbell.processor.store(this_processor() + 1);
  EXPECT_TRUE(origin().is_attended(kTarget));
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(DelegationSlotsOf, AnOriginThatFindsNobodyWaitingLeavesWord) {
  block().doorbell.attention.store(0);
  EXPECT_FALSE(target().take_missed());
  EXPECT_FALSE(origin().is_attended(kTarget));
  EXPECT_TRUE(target().take_missed());
  EXPECT_FALSE(target().take_missed());
  block().doorbell.attention.store(1);
  EXPECT_TRUE(origin().is_attended(kTarget));
  EXPECT_FALSE(target().take_missed());
}

TEST_F(DelegationSlotsOf, ARankWithoutSlotsIsNotAsked) {
  uint64_t word = 5;
  sides(kOther).segment.own_process().doorbell.attention.store(1);
  const uint64_t value = 6;
  EXPECT_FALSE(origin().copy(kOther, reinterpret_cast<uintptr_t>(&word), &value, 8, true));
}

}  // namespace
}  // namespace mobius::engine
