// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "transport/ofi/interfaces.h"
#include "transport/ofi/wire.h"

namespace mobius::transport::ofi {
namespace {

constexpr SipKey kKey = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
constexpr uint64_t kSender = 11, kReceiver = 22;

TEST(OfiWire, CodeIsSipHash) {
  // The test vectors of SipHash's authors, for 8 and 16 bytes.
  EXPECT_EQ(siphash(kKey, {0x0706050403020100}), 0x93f5f5799a932462u);
  EXPECT_EQ(siphash(kKey, {0x0706050403020100, 0x0f0e0d0c0b0a0908}), 0x3f2acc7f57c29bdbu);
}

std::vector<unsigned char> message_of(uint64_t sequence, size_t bytes, uint64_t sender = kSender) {
  std::vector<unsigned char> made(sizeof(MessageHeader) + bytes, 7);
  const MessageHeader header = make_header(kKey, sender, kReceiver, sequence, bytes);
  std::memcpy(made.data(), &header, sizeof header);
  return made;
}

TEST(OfiWire, MessagesOpenOnceAndInOrderOfTheirSender) {
  Senders senders(kKey, kReceiver);
  Opened opened;
  EXPECT_EQ(senders.open_message(message_of(1, 5), &opened), Verdict::kGood);
  EXPECT_EQ(opened.message.size(), 5u);
  EXPECT_EQ(opened.sender, kSender);
  EXPECT_EQ(senders.open_message(message_of(1, 5), &opened), Verdict::kReplayed);
  EXPECT_EQ(senders.open_message(message_of(3, 0), &opened), Verdict::kEarly);
  const Opened early = opened;
  EXPECT_FALSE(senders.due(early));
  EXPECT_EQ(senders.open_message(message_of(1, 5, kSender + 1), &opened), Verdict::kGood);
  EXPECT_EQ(senders.open_message(message_of(2, 9), &opened), Verdict::kGood);
  EXPECT_TRUE(senders.due(early));
  EXPECT_EQ(senders.open_message(message_of(3, 0), &opened), Verdict::kReplayed);
  EXPECT_EQ(senders.open_message(message_of(0, 0, 99), &opened), Verdict::kStranger);
}

TEST(OfiWire, GreetingsOpenWheneverTheyComeAndOnlyUnchanged) {
  Senders senders(kKey, kReceiver);
  Opened opened;
  const Greeting greeting{77, Greeting::kAsks | Greeting::kAnswers};
  const MessageHeader header = make_greeting_header(kKey, kSender, kReceiver, greeting);
  std::vector<unsigned char> good(sizeof header + sizeof greeting);
  std::memcpy(good.data(), &header, sizeof header);
  std::memcpy(good.data() + sizeof header, &greeting, sizeof greeting);
  for (const uint64_t sequence : {1, 2}) {
    EXPECT_EQ(senders.open_message(good, &opened), Verdict::kGreeting);
    EXPECT_EQ(opened.sender, kSender);
    ASSERT_EQ(opened.message.size(), sizeof greeting);
    EXPECT_EQ(std::memcmp(opened.message.data(), &greeting, sizeof greeting), 0);
    EXPECT_EQ(senders.open_message(message_of(sequence, 5), &opened), Verdict::kGood);
  }
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_EQ(senders.open_message(bad, &opened), Verdict::kStranger) << "bit " << bit;
  }
  for (size_t bytes = 0; bytes < good.size() + 10; ++bytes) {
    auto bad = good;
    bad.resize(bytes, 0);
    if (bytes == good.size()) continue;
    EXPECT_EQ(senders.open_message(bad, &opened), Verdict::kStranger) << bytes;
  }
  Senders elsewhere(kKey, kReceiver + 1);
  EXPECT_EQ(elsewhere.open_message(good, &opened), Verdict::kStranger);
}

TEST(OfiWire, MessagesForOthersOrOfOthersAreStrange) {
  Opened opened;
  const auto message = message_of(1, 16);
  Senders elsewhere(kKey, kReceiver + 1);
  EXPECT_EQ(elsewhere.open_message(message, &opened), Verdict::kStranger);
  Senders other_job({{1, 2}}, kReceiver);
  EXPECT_EQ(other_job.open_message(message, &opened), Verdict::kStranger);
}

TEST(OfiWire, NoChangeOfAHeaderAndNoLengthGetsThrough) {
  Senders senders(kKey, kReceiver);
  Opened opened;
  const auto good = message_of(1, 40);
  for (size_t bit = 0; bit < 8 * sizeof(MessageHeader); ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_EQ(senders.open_message(bad, &opened), Verdict::kStranger) << "bit " << bit;
  }
  for (size_t bytes = 0; bytes < good.size() + 10; ++bytes) {
    auto bad = good;
    bad.resize(bytes, 7);
    if (bytes == good.size()) continue;
    EXPECT_EQ(senders.open_message(bad, &opened), Verdict::kStranger) << bytes;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<unsigned char> bad(random() % 100);
    for (unsigned char& byte : bad) byte = static_cast<unsigned char>(random());
    EXPECT_EQ(senders.open_message(bad, &opened), Verdict::kStranger);
  }
  // The dropped messages left no trace.
  EXPECT_EQ(senders.open_message(good, &opened), Verdict::kGood);
}

sockaddr_storage ip(const char* text) {
  Subnet subnet;
  EXPECT_TRUE(parse_subnet(text, &subnet)) << text;
  return subnet.address;
}

TEST(OfiInterfaces, SubnetsAreParsedAndContainTheirAddresses) {
  Subnet subnet;
  ASSERT_TRUE(parse_subnet("10.1.2.0/23", &subnet));
  EXPECT_TRUE(subnet.contains(ip("10.1.3.255")));
  EXPECT_FALSE(subnet.contains(ip("10.1.4.0")));
  EXPECT_FALSE(subnet.contains(ip("fd00::1")));
  ASSERT_TRUE(parse_subnet("10.1.2.9", &subnet));
  EXPECT_TRUE(subnet.contains(ip("10.1.2.9")));
  EXPECT_FALSE(subnet.contains(ip("10.1.2.8")));
  ASSERT_TRUE(parse_subnet("fd00:1::/32", &subnet));
  EXPECT_TRUE(subnet.contains(ip("fd00:1:2::3")));
  EXPECT_FALSE(subnet.contains(ip("fd00:2::3")));
  ASSERT_TRUE(parse_subnet("0.0.0.0/0", &subnet));
  EXPECT_TRUE(subnet.contains(ip("8.8.8.8")));
  for (const char* bad : {"", "eth0", "10.1.2", "10.1.2.3/33", "10.1.2.3/", "10.1.2.3/x", "/24",
                          "fd00::/129", "10.1.2.3/-1", "10.1.2.3/8 "}) {
    EXPECT_FALSE(parse_subnet(bad, &subnet)) << bad;
  }
}

TEST(OfiInterfaces, HostsAreBetterReachedByFastInterfacesThanByBridgesOrLoopbacks) {
  const auto make = [](const char* text, long speed) {
    Interface made;
    made.address = ip(text);
    made.running = true;
    made.speed = speed;
    return made;
  };
  const Interface slow = make("10.0.0.1", 1000);
  const Interface fast = make("10.0.1.1", 100'000);
  const Interface fast_v6 = make("fd00::1", 100'000);
  Interface bridge = make("172.17.0.1", 200'000);
  bridge.bridge = true;
  Interface loopback = make("127.0.0.1", 0);
  loopback.loopback = true;
  Interface down = make("10.0.2.1", 200'000);
  down.running = false;
  EXPECT_TRUE(better(fast, slow));
  EXPECT_TRUE(better(fast, fast_v6));
  EXPECT_TRUE(better(slow, bridge));
  EXPECT_TRUE(better(bridge, loopback));
  EXPECT_TRUE(better(slow, down));
  EXPECT_FALSE(better(slow, slow));
}

TEST(OfiInterfaces, LoopbackIsAmongThoseOfThisHost) {
  bool found = false;
  for (const Interface& interface : host_interfaces()) {
    found = found || (interface.loopback && same_ip(interface.address, ip("127.0.0.1")));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace mobius::transport::ofi
