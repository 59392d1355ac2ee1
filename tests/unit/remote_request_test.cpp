// SPDX-License-Identifier: BSD-3-Clause

// Operations that go to another host each by itself: requests, answers, and remote memory access.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/transfer/router.h"
#include "fake_hosts.h"

namespace mobius::engine {
namespace {

constexpr size_t kBytesInFrame = 40'000;  // no two of them fit into one frame

TEST(RemoteRequests, ALongPutAsksOnceThenWritesUnasked) {
  for (const bool has_keys : {true, false}) {
    TwoHosts hosts({has_keys ? "MOBIUS_RMA_KEYS=auto" : "MOBIUS_RMA_KEYS=off"});
    for (unsigned char i = 1; i <= 3; ++i) {
      const Bytes data(kLongBytes, i);
      ASSERT_EQ(hosts.own.put(1, hosts.memory + i * kLongBytes, data.data(), kLongBytes), MOB_OK);
      EXPECT_TRUE(hosts.holds(i * kLongBytes, kLongBytes, i));
    }
    EXPECT_EQ(hosts.requests(), has_keys ? 1u : 3u);
    EXPECT_EQ(hosts.fabric().registrations_of(0), 0u);
    ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  }
}

// Written unasked, it would overtake the operation that is not answered.
TEST(RemoteRequests, ALongPutAsksWhileAnOrderedOperationIsUnderWay) {
  TwoHosts hosts;
  const Bytes data(kLongBytes, 1);
  ASSERT_EQ(hosts.own.put(1, hosts.memory, data.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts.requests(), 1u);
  hosts.fabric().hold(1, 0);
  uint64_t got = 0;
  ASSERT_EQ(hosts.own.get_nbi(1, hosts.memory, &got, 8), MOB_OK);
  ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + kLongBytes, data.data(), kLongBytes), MOB_OK);
  hosts.settle();
  EXPECT_EQ(hosts.requests(), 2u);
  hosts.fabric().release(1, 0);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory + kLongBytes, data.data(), kLongBytes), MOB_OK);
  EXPECT_EQ(hosts.requests(), 2u);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
}

TEST(RemoteRequests, ALongGetNeedsNoAnswerBesideItsBytes) {
  TwoHosts hosts;
  std::fill_n(hosts.memory, kLongBytes, 7);
  Bytes got(kLongBytes);
  ASSERT_EQ(hosts.own.get(1, hosts.memory, got.data(), kLongBytes), MOB_OK);
  EXPECT_EQ(got, Bytes(kLongBytes, 7));
  EXPECT_EQ(hosts.requests(), 1u);
  EXPECT_EQ(hosts.count(1, InternalHandler::kServed), 0u);
  EXPECT_EQ(hosts.fabric().writes_ahead(), 1u);
  EXPECT_EQ(hosts.fabric().registrations_of(0), 0u);
}

// The target reads the bytes of the first put late; the second put, written unasked, is complete
// before. Only a flush tells of the first, so the get follows one.
TEST(RemoteRequests, ALongGetBehindAFlushSeesALongPutThatTheTargetReadsLate) {
  TwoHosts hosts;
  ASSERT_EQ(hosts.own.put(1, hosts.memory, Bytes(kLongBytes, 1).data(), kLongBytes), MOB_OK);
  hosts.fabric().hold(1, 0);
  hosts.fabric().hold_transfers(1);
  uint64_t word = 0;
  const Bytes data(kLongBytes, 2);
  ASSERT_EQ(hosts.own.get_nbi(1, hosts.memory + 3 * kLongBytes, &word, 8), MOB_OK);
  ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory, data.data(), kLongBytes), MOB_OK);
  hosts.settle();
  hosts.fabric().release(1, 0);
  hosts.settle();
  ASSERT_EQ(hosts.own.put(1, hosts.memory + kLongBytes, data.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts.fabric().transfers_of(1), 1u);
  EXPECT_TRUE(hosts.holds(0, kLongBytes, 1));
  hosts.when_stuck([&] { hosts.fabric().release_all(); });
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(hosts.fabric().transfers_of(1), 0u);
  Bytes got(kLongBytes);
  ASSERT_EQ(hosts.own.get(1, hosts.memory, got.data(), kLongBytes), MOB_OK);
  EXPECT_EQ(got, data);
}

// A later put may go by another way, so the fence waits for the first one.
TEST(RemoteRequests, AFenceWaitsForALongPut) {
  TwoHosts hosts;
  hosts.fabric().hold_transfers(1);
  const Bytes first(kLongBytes, 1);
  const uint64_t second = 2;
  ASSERT_EQ(hosts.own.put_nbi(1, hosts.memory, first.data(), kLongBytes), MOB_OK);
  bool was_stuck = false;
  hosts.when_stuck([&] {
    was_stuck = true;
    EXPECT_TRUE(hosts.holds(0, kLongBytes, 0));
    hosts.fabric().release_all();
  });
  ASSERT_EQ(hosts.own.fence(), MOB_OK);
  EXPECT_TRUE(was_stuck);
  ASSERT_EQ(hosts.own.put(1, hosts.memory, &second, 8), MOB_OK);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_EQ(hosts.memory[0], 2);
  EXPECT_EQ(hosts.memory[8], 1);
}

// After the first error the other parts are carried out all the same, and it is told once.
TEST(RemoteRequests, OneOfSeveralPartsThatFailsIsTheErrorOfAll) {
  TwoHosts hosts({"MOBIUS_RMA_BYTES=64M"});
  constexpr size_t kPart = 1 << 20;
  const Bytes data(3 * kPart, 1);
  unsigned char* const start = hosts.memory + 3 * kPart;  // the last part lies behind the end
  EXPECT_EQ(hosts.own.put(1, start, data.data(), data.size()), MOB_OK);
  EXPECT_EQ(hosts.own.flush(1), MOB_ERR_RANGE);
  EXPECT_EQ(hosts.requests(), 3u);
  EXPECT_TRUE(hosts.holds(3 * kPart, 2 * kPart, 1));
  EXPECT_EQ(hosts.own.flush(1), MOB_OK);
}

// Then the put that finds the window of the link full waits.
TEST(RemoteRequests, APeerThatReportsNothingIsSentNoMoreThanAWindow) {
  TwoHosts hosts({"MOBIUS_SCHEDULE=fifo"});
  hosts.fabric().hold(1, 0);
  const Bytes data(50'000, 1);
  size_t started = 0;
  bool was_stuck = false;
  hosts.when_stuck([&] {
    was_stuck = true;
    EXPECT_EQ(started, 65u);  // one is staged
    EXPECT_EQ(hosts.requests(), 64u);
    EXPECT_TRUE(hosts.holds(0, 64 * data.size(), 1));
    hosts.fabric().release(1, 0);
  });
  for (; started < 80; ++started) {
    unsigned char* const there = hosts.memory + started * data.size();
    ASSERT_EQ(hosts.own.put_nbi(1, there, data.data(), data.size()), MOB_OK);
  }
  EXPECT_TRUE(was_stuck);
  ASSERT_EQ(hosts.own.flush(1), MOB_OK);
  EXPECT_TRUE(hosts.holds(0, 80 * data.size(), 1));
}

// A long payload is sent from the program's memory only where that stays unchanged.
TEST(RemoteRequests, ABlockingPutIsTheProgramsAgainBeforeItArrives) {
  constexpr size_t kPuts = 100;  // more than a window
  for (const bool refuses : {false, true}) {
    TwoHosts hosts;
    hosts.fabric().hold(0, 1);
    if (refuses) hosts.fabric().refuse(0, transport::ofi::FakeFabric::kAlways);
    bool was_stuck = false;
    hosts.when_stuck([&] {
      was_stuck = true;
      hosts.fabric().release_all();
    });
    for (size_t i = 0; i < kPuts; ++i) {
      Bytes own(kBytesInFrame, static_cast<unsigned char>(i + 1));
      ASSERT_EQ(hosts.own.put(1, hosts.memory + i * own.size(), own.data(), own.size()), MOB_OK);
      std::ranges::fill(own, 255);
    }
    EXPECT_TRUE(was_stuck);
    ASSERT_EQ(hosts.own.flush(1), MOB_OK);
    for (size_t i = 0; i < kPuts; ++i) {
      ASSERT_TRUE(hosts.holds(i * kBytesInFrame, kBytesInFrame, static_cast<unsigned char>(i + 1)))
          << i;
    }
  }
}

// Freed memory must not be written with a key that was given before: its owner waits until the
// writes have ended.
TEST(RemoteRequests, FreeingMemoryWaitsForWritesWithItsKey) {
  TwoHosts hosts;
  unsigned char* const freed = hosts[1].allocate(kLongBytes);
  const Bytes data(kLongBytes, 1);
  ASSERT_EQ(hosts.own.put(1, freed, data.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts.fabric().registrations_of(1), 1u);
  hosts.fabric().hold_transfers(0);
  ASSERT_EQ(hosts.own.put_nbi(1, freed, data.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts.fabric().transfers_of(0), 1u);
  bool was_stuck = false;
  hosts.when_stuck([&] {
    was_stuck = true;
    EXPECT_EQ(hosts.fabric().registrations_of(1), 1u);
    hosts.fabric().release_all();
  });
  hosts[1].free(freed);
  EXPECT_TRUE(was_stuck);
  EXPECT_EQ(hosts.fabric().registrations_of(1), 0u);
  EXPECT_EQ(hosts.own.flush(1), MOB_OK);
  // The key is gone: the next put asks, and is refused.
  EXPECT_EQ(hosts.own.put(1, freed, data.data(), kLongBytes), MOB_ERR_RANGE);
}

}  // namespace
}  // namespace mobius::engine
