// SPDX-License-Identifier: BSD-3-Clause

// Requests to another host whose target dies, or whose answers make no sense.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/network/network.h"
#include "engine/request/am_rma.h"
#include "fake_hosts.h"

namespace mobius::engine {
namespace {

// Has a rank answer a request of rank 0 by hand, with an answer that reports no error.
void answer_request(FakeHosts& hosts, mob_rank_t from, uint64_t part, size_t payload_bytes) {
  const struct {
    uint64_t part;
    mob_status_t status;
    int32_t has_key;
  } reply{part, MOB_OK, 0};
  const std::vector<char> payload(payload_bytes, 'x');
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kServed);
  message.header = &reply;
  message.header_bytes = sizeof reply;
  message.payload = payload.data();
  message.payload_bytes = payload.size();
  ASSERT_EQ(hosts[from].messages().post("the test", 0, message), MOB_OK);
  hosts.settle();
}

uint64_t last_part(const FakeHosts& hosts) {
  uint64_t part = 0;
  std::memcpy(&part, hosts.sent().back().header.data(), sizeof part);
  return part;
}

// A target dies while it reads the bytes of one put and has not answered a get and an update.
TEST(RemoteFaults, AllRequestsToADeadRankEndWithAnError) {
  FakeHosts hosts(2, {"MOBIUS_SCHEDULE=fifo"});
  unsigned char* const memory = hosts[1].allocate(1 << 20);
  const Bytes data(kLongBytes, 1);
  Bytes long_got(kLongBytes, 9);
  Bytes got(100, 9);
  hosts.fabric().hold(1, 0);
  hosts.fabric().hold_transfers(1);
  ASSERT_EQ(hosts[0].put_nbi(1, memory, data.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts[0].get_nbi(1, memory + kLongBytes, long_got.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts[0].get_nbi(1, memory, got.data(), got.size()), MOB_OK);
  hosts.settle();
  EXPECT_EQ(hosts.fabric().registrations_of(0), 2u);
  hosts.when_stuck([&] { hosts.kill(1); });
  uint64_t old = 9;
  EXPECT_EQ(hosts[0].requests().compare_swap("the test", 1, memory, 8, 0, 1, &old), MOB_ERR_PEER);
  EXPECT_TRUE(says("rank 1")) << mob_last_error();
  EXPECT_EQ(hosts[0].flush(1), MOB_ERR_PEER);
  EXPECT_TRUE(says("rank 1")) << mob_last_error();
  EXPECT_EQ(hosts[0].flush(1), MOB_OK);
  // Nobody may access the buffers any more: the program may reuse them.
  EXPECT_EQ(hosts.fabric().registrations_of(0), 0u);
  hosts.fabric().release_all();
  hosts.settle();
  hosts.expect_wrong_accesses(2);
  EXPECT_EQ(long_got, Bytes(kLongBytes, 9));
  EXPECT_EQ(got, Bytes(100, 9));
  EXPECT_EQ(old, 9u);
}

// A put that is written unasked, whose target dies meanwhile.
TEST(RemoteFaults, AWriteToARankWhoseConnectionBreaksFails) {
  FakeHosts hosts(2);
  unsigned char* const memory = hosts[1].allocate(1 << 20);
  const Bytes data(kLongBytes, 1);
  ASSERT_EQ(hosts[0].put(1, memory, data.data(), kLongBytes), MOB_OK);
  hosts.fabric().hold_transfers(0);
  hosts.when_stuck([&] { hosts.fabric().cut(0, 1, "the cable is cut"); });
  EXPECT_EQ(hosts[0].put(1, memory, data.data(), kLongBytes), MOB_ERR_PEER);
  EXPECT_TRUE(says("the cable is cut")) << mob_last_error();
  // Later calls fail at once.
  EXPECT_EQ(hosts[0].put(1, memory, data.data(), kLongBytes), MOB_ERR_PEER);
  EXPECT_TRUE(says("the cable is cut")) << mob_last_error();
}

TEST(RemoteFaults, ALostRankDoesNotHoldUpOthers) {
  FakeHosts hosts(3);
  unsigned char* const memory = hosts[1].allocate(1 << 20);
  unsigned char* const other = hosts[2].allocate(1 << 20);
  const Bytes data(kLongBytes, 1);
  hosts.fabric().hold(1, 0);
  ASSERT_EQ(hosts[0].put_nbi(1, memory, data.data(), kLongBytes), MOB_OK);
  ASSERT_EQ(hosts[0].put_nbi(2, other, data.data(), kLongBytes), MOB_OK);
  hosts.kill(1);
  EXPECT_EQ(hosts[0].flush(2), MOB_OK) << mob_last_error();
  EXPECT_EQ(other[kLongBytes - 1], 1);
  EXPECT_EQ(hosts[0].flush(1), MOB_ERR_PEER);
}

TEST(RemoteFaults, AnAnswerOfTheWrongSizeOrRankIsAnErrorAndWritesNothing) {
  FakeHosts hosts(3, {"MOBIUS_SCHEDULE=fifo"});
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  for (const auto& [from, bytes] :
       {std::pair<mob_rank_t, size_t>{1, 0}, {1, 99}, {1, 101}, {2, 100}}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes of rank " + std::to_string(from));
    Bytes got(100, 9);
    hosts.fabric().hold(0, 1);
    ASSERT_EQ(hosts[0].get_nbi(1, memory, got.data(), got.size()), MOB_OK);
    answer_request(hosts, from, last_part(hosts), bytes);
    EXPECT_EQ(hosts[0].flush(1), MOB_ERR_SYSTEM);
    EXPECT_TRUE(says("its answer makes no sense")) << mob_last_error();
    // The answer to the request itself comes too late.
    hosts.fabric().release(0, 1);
    hosts.settle();
    EXPECT_EQ(got, Bytes(100, 9));
  }
}

TEST(RemoteFaults, AnAnswerToNothingIsIgnored) {
  FakeHosts hosts(2, {"MOBIUS_SCHEDULE=fifo"});
  unsigned char* const memory = hosts[1].allocate(1 << 16);
  Bytes got(100, 9);
  hosts.fabric().hold(0, 1);
  ASSERT_EQ(hosts[0].get_nbi(1, memory, got.data(), got.size()), MOB_OK);
  answer_request(hosts, 1, last_part(hosts) + 1, 100);
  hosts[0].requests().noted(12345);
  EXPECT_EQ(got, Bytes(100, 9));
  hosts.fabric().release(0, 1);
  ASSERT_EQ(hosts[0].flush(1), MOB_OK) << mob_last_error();
  EXPECT_EQ(got, Bytes(100, 0));
}

}  // namespace
}  // namespace mobius::engine
