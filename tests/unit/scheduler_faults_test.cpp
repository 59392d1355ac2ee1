// SPDX-License-Identifier: BSD-3-Clause

// The scheduler where a target dies, and where answers come that nobody asked for.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engine/request/batch_wire.h"
#include "engine/scheduler/scheduler.h"
#include "fake_hosts.h"

namespace mobius::engine {
namespace {

// Has rank 1 answer a batch by hand.
void answer_batch(FakeHosts& hosts, uint64_t id, size_t payload_bytes) {
  BatchReply reply;
  reply.id = id;
  const std::vector<char> payload(payload_bytes, 'x');
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kPacked);
  message.header = &reply;
  message.header_bytes = BatchReply::bytes(MOB_OK);
  message.payload = payload.data();
  message.payload_bytes = payload.size();
  ASSERT_EQ(hosts[1].messages().post("the test", 0, message), MOB_OK);
  hosts.settle();
}

TEST(SchedulerFaults, AllThatIsUnderWayToADeadRankEndsWithAnError) {
  FakeHosts hosts(3);
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  unsigned char* const other = hosts[2].allocate(1 << 16);
  const uint64_t value = 1;
  uint64_t issued = 9;
  uint64_t recorded = 9;
  uint64_t awaited = 9;
  uint64_t handle = 0;
  ASSERT_EQ(hosts[0].put_nbi(1, memory, &value, 8), MOB_OK);
  ASSERT_EQ(hosts[0].get_nbi(1, memory, &issued, 8), MOB_OK);
  hosts[0].scheduler().issue(1);
  ASSERT_EQ(hosts[0].get_nbi(1, memory + 8, &recorded, 8), MOB_OK);
  ASSERT_EQ(hosts[0].get_nb(1, memory + 16, &awaited, 8, &handle), MOB_OK);
  ASSERT_EQ(hosts[0].put_nbi(2, other, &value, 8), MOB_OK);
  hosts.kill(1);
  EXPECT_EQ(hosts[0].wait(handle), MOB_ERR_PEER);
  EXPECT_TRUE(says("rank 1")) << mob_last_error();
  EXPECT_EQ(hosts[0].flush(1), MOB_ERR_PEER);
  EXPECT_TRUE(says("rank 1")) << mob_last_error();
  EXPECT_EQ(hosts[0].flush(2), MOB_OK) << mob_last_error();
  EXPECT_EQ(other[0], 1);
  EXPECT_EQ(issued, 9u);
  EXPECT_EQ(recorded, 9u);
  EXPECT_EQ(awaited, 9u);
  // What is started afterwards fails, too.
  ASSERT_EQ(hosts[0].put_nbi(1, memory, &value, 8), MOB_OK);
  EXPECT_EQ(hosts[0].flush(1), MOB_ERR_PEER);
}

TEST(SchedulerFaults, ABlockingGetFromARankThatDiesMeanwhileFails) {
  FakeHosts hosts(2);
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  hosts.fabric().hold(0, 1);
  hosts.when_stuck([&] { hosts.kill(1); });
  uint64_t got = 9;
  EXPECT_EQ(hosts[0].get(1, memory, &got, 8), MOB_ERR_PEER);
  EXPECT_TRUE(says("rank 1")) << mob_last_error();
  EXPECT_EQ(got, 9u);
}

// The answer of operations that were given up must not be taken for that of later ones.
TEST(SchedulerFaults, AnAnswerThatComesTooLateIsDropped) {
  FakeHosts hosts(2);
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  memory[0] = 5;
  memory[8] = 6;
  hosts.fabric().hold(1, 0);
  uint64_t late = 9;
  ASSERT_EQ(hosts[0].get_nbi(1, memory, &late, 8), MOB_OK);
  hosts[0].scheduler().issue(1);
  hosts.settle();
  ASSERT_EQ(hosts.fabric().on_the_way(1, 0), 1u);
  hosts[0].scheduler().give_up(1);
  EXPECT_EQ(hosts[0].flush(1), MOB_ERR_PEER);
  uint64_t got = 9;
  ASSERT_EQ(hosts[0].get_nbi(1, memory + 8, &got, 8), MOB_OK);
  hosts[0].scheduler().issue(1);
  hosts.fabric().release(1, 0);
  ASSERT_EQ(hosts[0].flush(1), MOB_OK) << mob_last_error();
  EXPECT_EQ(got, 6u);
  EXPECT_EQ(late, 9u);
}

TEST(SchedulerFaults, AnAnswerToNothingIsIgnored) {
  FakeHosts hosts(2);
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  answer_batch(hosts, 1, 8);
  const uint64_t value = 7;
  uint64_t got = 9;
  hosts.fabric().hold(0, 1);
  ASSERT_EQ(hosts[0].put_nbi(1, memory, &value, 8), MOB_OK);
  ASSERT_EQ(hosts[0].get_nbi(1, memory, &got, 8), MOB_OK);
  hosts[0].scheduler().issue(1);
  ASSERT_EQ(hosts.count(0, InternalHandler::kPack), 1u);
  answer_batch(hosts, 77, 8);
  EXPECT_EQ(got, 9u);
  hosts.fabric().release(0, 1);
  ASSERT_EQ(hosts[0].flush(1), MOB_OK) << mob_last_error();
  EXPECT_EQ(got, 7u);
}

TEST(SchedulerFaults, AnAnswerOfTheWrongSizeIsAnErrorAndWritesNothing) {
  FakeHosts hosts(2);
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{9}, size_t{100'000}}) {
    SCOPED_TRACE(bytes);
    hosts.fabric().hold(0, 1);
    uint64_t got = 9;
    ASSERT_EQ(hosts[0].get_nbi(1, memory, &got, 8), MOB_OK);
    hosts[0].scheduler().issue(1);
    const std::vector<SentMessage> sent = hosts.sent();
    BatchRequest request{};
    std::memcpy(&request, sent.back().header.data(), sizeof request);
    answer_batch(hosts, request.id, bytes);
    EXPECT_EQ(hosts[0].flush(1), MOB_ERR_SYSTEM);
    EXPECT_TRUE(says("makes no sense")) << mob_last_error();
    // The answer to the request itself comes too late.
    hosts.fabric().release(0, 1);
    hosts.settle();
    EXPECT_EQ(got, 9u);
  }
}

}  // namespace
}  // namespace mobius::engine
