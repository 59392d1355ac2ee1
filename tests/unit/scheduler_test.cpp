// SPDX-License-Identifier: BSD-3-Clause

// The scheduler of one rank and the server of another, over a network that does what the test says.

#include "engine/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/request/batch_wire.h"
#include "fake_hosts.h"

namespace mobius::engine {
namespace {

struct Recording : TwoHosts {
  using TwoHosts::TwoHosts;

  Scheduler& scheduler = own.scheduler();

  uint64_t word(size_t at) const {
    uint64_t value = 0;
    std::memcpy(&value, memory + at, sizeof value);
    return value;
  }
  // Puts a word at a place that is no neighbour of another.
  void put_word(size_t i, uint64_t value) {
    ASSERT_EQ(own.put_nbi(1, memory + 100 * i + i % 7, &value, sizeof value), MOB_OK);
  }
};

TEST(SchedulerOverFabric, PutsThatAreOnlyStartedShareAMessage) {
  Recording hosts;
  for (size_t i = 0; i < 100; ++i) hosts.put_word(i, i + 1);
  hosts.settle();
  EXPECT_TRUE(hosts.sent().empty());
  ASSERT_EQ(hosts.own.flush(1), MOB_OK) << mob_last_error();
  EXPECT_EQ(hosts.batches(), 1u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(hosts.word(100 * i + i % 7), i + 1);
}

// The first goes at once. Others share a message that goes when the first is answered.
TEST(SchedulerOverFabric, BlockingPutsGoWithTheAnswerToTheOneBefore) {
  Recording hosts;
  hosts.fabric().hold(1, 0);
  for (uint64_t i = 1; i <= 10; ++i) {
    ASSERT_EQ(hosts.own.put(1, hosts.memory + 100 * i, &i, 8), MOB_OK);
    hosts.settle();
    EXPECT_EQ(hosts.batches(), 1u);
  }
  EXPECT_EQ(hosts.word(100), 1u);
  EXPECT_EQ(hosts.word(200), 0u);
  hosts.fabric().release(1, 0);
  hosts.settle();  // nobody waits
  EXPECT_EQ(hosts.batches(), 2u);
  EXPECT_EQ(hosts.word(1000), 10u);
  EXPECT_EQ(hosts.own.flush(1), MOB_OK);
}

TEST(SchedulerOverFabric, AFullQueueGoesByItself) {
  // As many operations as fit, and as many bytes of copies.
  for (const auto& [most, bytes] : {std::pair<size_t, size_t>{2048, 8}, {512, 64}}) {
    Recording hosts;
    const std::vector<char> data(bytes, 'd');
    const auto put = [&](size_t i) {
      ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + 100 * i + i % 7, data.data(), bytes), MOB_OK);
    };
    for (size_t i = 0; i < most; ++i) put(i);
    EXPECT_EQ(hosts.batches(), 0u) << most;
    put(most);
    EXPECT_GT(hosts.batches(), 0u) << most;
    ASSERT_EQ(hosts.own.flush(1), MOB_OK);
    for (size_t i = 0; i <= most; ++i) ASSERT_EQ(hosts.memory[100 * i + i % 7], 'd') << i;
  }
}

TEST(SchedulerOverFabric, ARecordingThreadWaitsWhileManyMessagesAreUnanswered) {
  Recording hosts;
  hosts.fabric().hold(1, 0);
  size_t recorded = 0;
  size_t recorded_when_stuck = 0;
  hosts.when_stuck([&] {
    recorded_when_stuck = recorded;
    hosts.fabric().release(1, 0);
  });
  for (; recorded < 200; ++recorded) {
    hosts.put_word(recorded, recorded + 1);
    hosts.scheduler.issue(1);
  }
  EXPECT_GE(recorded_when_stuck, 64u);
  EXPECT_LE(recorded_when_stuck, 66u);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(hosts.batches(), 200u);
  for (size_t i = 0; i < 200; ++i) ASSERT_EQ(hosts.word(100 * i + i % 7), i + 1);
}

// Transfers that are too long for a packed message.
TEST(SchedulerOverFabric, ARecordingThreadWaitsWhileManyLongTransfersAreUnanswered) {
  Recording hosts;
  constexpr size_t kBytes = 12'000;
  const std::vector<char> data(kBytes, 'l');
  hosts.fabric().hold(1, 0);
  size_t recorded = 0;
  size_t recorded_when_stuck = 0;
  hosts.when_stuck([&] {
    recorded_when_stuck = recorded;
    hosts.fabric().release(1, 0);
  });
  for (; recorded < 600; ++recorded) {
    ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + recorded % 2 * kBytes, data.data(), kBytes),
              MOB_OK);
    hosts.scheduler.issue(1);
  }
  EXPECT_GE(recorded_when_stuck, 256u);
  EXPECT_LE(recorded_when_stuck, 258u);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(hosts.batches(), 0u);
}

// What the network refuses waits in order, and nothing is lost or sent twice.
TEST(SchedulerOverFabric, ANetworkWithoutRoomKeepsTheOrder) {
  Recording hosts;
  hosts.fabric().refuse(0, transport::ofi::FakeFabric::kAlways);
  for (uint64_t i = 1; i <= 50; ++i) {
    ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory, &i, 8), MOB_OK);
    ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + 8 * i, &i, 8), MOB_OK);
    hosts.scheduler.issue(1);
  }
  hosts.settle();
  EXPECT_TRUE(hosts.sent().empty());
  hosts.fabric().refuse(0, 3);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(hosts.batches(), 50u);
  EXPECT_EQ(hosts.word(0), 50u);
  for (uint64_t i = 1; i <= 50; ++i) EXPECT_EQ(hosts.word(8 * i), i);
}

TEST(SchedulerOverFabric, AGetOvertakesAPutUnlessAFenceStandsBetween) {
  for (const char* const policy : {"interleave", "gets-first"}) {
    for (const bool fenced : {false, true}) {
      Recording hosts({std::string("MOBIUS_SCHEDULE=") + policy});
      const std::vector<char> data(4000, 'p');
      char got = 0;
      ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory, data.data(), data.size()), MOB_OK);
      if (fenced) {
        ASSERT_EQ(hosts.own.fence(), MOB_OK);
      }
      ASSERT_EQ(hosts.own.get_nbi(1, hosts.memory + 5000, &got, 1), MOB_OK);
      ASSERT_EQ(hosts.own.flush(1), MOB_OK);
      std::vector<bool> puts;  // each operation is a message
      for (const SentMessage& each : hosts.sent()) {
        if (each.handler == InternalHandler::kPack)
          puts.push_back(each.payload_bytes > data.size());
      }
      EXPECT_EQ(puts, fenced ? (std::vector<bool>{true, false}) : (std::vector<bool>{false, true}))
          << policy;
    }
  }
}

TEST(SchedulerOverFabric, AFencedGetOfAPackSeesThePutBefore) {
  Recording hosts;
  for (uint64_t i = 1; i <= 20; ++i) {
    uint64_t got = 0;
    ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory, &i, 8), MOB_OK);
    ASSERT_EQ(hosts.own.get_nbi(1, hosts.memory, &got, 8), MOB_OK);
    ASSERT_EQ(hosts.own.flush(1), MOB_OK);
    EXPECT_EQ(got, i);
  }
  EXPECT_EQ(hosts.batches(), 20u);
}

TEST(SchedulerOverFabric, OneWrongAddressSpoilsNoOtherOperationOfItsMessage) {
  Recording hosts;
  hosts.put_word(0, 1);
  const uint64_t value = 2;
  ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + (16 << 20), &value, 8), MOB_OK);
  hosts.put_word(2, 3);
  EXPECT_EQ(hosts.own.flush(1), MOB_ERR_RANGE);
  EXPECT_TRUE(says("rank 1: 8 bytes at")) << mob_last_error();
  EXPECT_EQ(hosts.batches(), 1u);
  EXPECT_EQ(hosts.word(0), 1u);
  EXPECT_EQ(hosts.word(202), 3u);
  EXPECT_EQ(hosts.own.flush(1), MOB_OK);
}

// An error belongs to the context whose operation failed, whichever thread or context issues it.
TEST(SchedulerOverFabric, AnErrorIsToldInTheContextOfItsOperation) {
  Recording hosts;
  Completion& completion = hosts.own.completion();
  uint64_t other = 0;
  ASSERT_EQ(completion.create_context(&other), MOB_OK);
  ASSERT_EQ(completion.use_context(other), MOB_OK);
  const uint64_t value = 2;
  ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + (16 << 20), &value, 8), MOB_OK);
  ASSERT_EQ(completion.use_context(0), MOB_OK);
  hosts.put_word(0, 1);  // another context: what was recorded goes
  EXPECT_EQ(hosts.batches(), 1u);
  EXPECT_EQ(hosts.own.flush(1), MOB_OK) << mob_last_error();
  hosts.settle();
  ASSERT_EQ(completion.use_context(other), MOB_OK);
  EXPECT_EQ(hosts.own.flush(1), MOB_ERR_RANGE);
  ASSERT_EQ(completion.free_context(other), MOB_OK);
}

TEST(SchedulerOverFabric, ATellTravelsBehindTheOperationsInTheirMessage) {
  Recording hosts;
  EXPECT_FALSE(hosts.scheduler.tell(1, "alone", 5));
  hosts.put_word(0, 1);
  EXPECT_TRUE(hosts.scheduler.tell(1, "with a put", 10));
  hosts.settle();
  EXPECT_EQ(hosts.batches(), 1u);
  EXPECT_EQ(hosts.word(0), 1u);
  EXPECT_EQ(hosts[1].told(), std::vector<std::string>{"with a put"});
  EXPECT_FALSE(hosts.scheduler.tell(1, "alone", 5));
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
}

TEST(SchedulerOverFabric, ATellIsLeftToTheCallerWhereNothingIsPacked) {
  Recording hosts({"MOBIUS_SCHEDULE=interleave"});
  hosts.put_word(0, 1);
  EXPECT_FALSE(hosts.scheduler.tell(1, "hello", 5));
  EXPECT_EQ(hosts.batches(), 1u);  // the put went, so that the tell follows it
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
}

TEST(SchedulerOverFabric, AnEpochDelaysBlockingPutsOfTheThreadThatOpenedIt) {
  Recording hosts;
  hosts.scheduler.open_epoch(1, std::nullopt);
  const uint64_t value = 7;
  ASSERT_EQ(hosts.own.put(1, hosts.memory, &value, 8), MOB_OK);
  hosts.settle();
  EXPECT_EQ(hosts.batches(), 0u);
  std::thread([&] { EXPECT_EQ(hosts.own.put(1, hosts.memory + 8, &value, 8), MOB_OK); }).join();
  EXPECT_EQ(hosts.batches(), 1u);  // others may look for that put
  hosts.scheduler.close_epoch(1);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(hosts.word(0), 7u);
  EXPECT_EQ(hosts.word(8), 7u);
}

TEST(SchedulerOverFabric, OnlyPacksOfPutsNeedNoAnswerForAFence) {
  Recording hosts;
  hosts.fabric().hold(1, 0);
  hosts.put_word(0, 1);
  EXPECT_FALSE(hosts.scheduler.puts_surely(1));  // only recorded
  hosts.scheduler.issue_for_fence(1);
  EXPECT_TRUE(hosts.scheduler.puts_surely(1));
  uint64_t got = 0;
  ASSERT_EQ(hosts.own.get_nbi(1, hosts.memory, &got, 8), MOB_OK);
  hosts.scheduler.issue_for_fence(1);
  EXPECT_FALSE(hosts.scheduler.puts_surely(1));
  hosts.fabric().release(1, 0);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(got, 1u);
}

}  // namespace
}  // namespace mobius::engine
