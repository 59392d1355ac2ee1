// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "transport/ofi/wire.h"

namespace mobius::transport::ofi {
namespace {

constexpr SipKey kKey = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
constexpr uint64_t kSender = 11, kReceiver = 22;

Senders senders_of(const SipKey& key, uint64_t receiver) {
  return Senders(key, receiver, false, [](uint64_t) { return Senders::Known{}; });
}

TEST(OfiWire, CodeIsSipHash) {
  // The test vectors of SipHash's authors, for 8 and 16 bytes.
  EXPECT_EQ(siphash(kKey, {0x0706050403020100}), 0x93f5f5799a932462u);
  EXPECT_EQ(siphash(kKey, {0x0706050403020100, 0x0f0e0d0c0b0a0908}), 0x3f2acc7f57c29bdbu);
}

Verdict open(Senders& senders, std::vector<unsigned char> message, Opened* opened) {
  return senders.open_message(message, opened);
}

std::vector<unsigned char> message_of(uint64_t sequence, size_t bytes, uint64_t sender = kSender) {
  std::vector<unsigned char> made(sizeof(MessageHeader) + bytes, 7);
  const MessageHeader header = make_header(kKey, sender, kReceiver, sequence, bytes);
  std::memcpy(made.data(), &header, sizeof header);
  return made;
}

TEST(OfiWire, MessagesOpenOnceAndInOrderOfTheirSender) {
  Senders senders = senders_of(kKey, kReceiver);
  Opened opened;
  EXPECT_EQ(open(senders, message_of(1, 5), &opened), Verdict::kGood);
  EXPECT_EQ(opened.message.size(), 5u);
  EXPECT_EQ(opened.sender, kSender);
  EXPECT_EQ(open(senders, message_of(1, 5), &opened), Verdict::kReplayed);
  EXPECT_EQ(open(senders, message_of(3, 0), &opened), Verdict::kEarly);
  const Opened early = opened;
  EXPECT_FALSE(senders.due(early));
  EXPECT_EQ(open(senders, message_of(1, 5, kSender + 1), &opened), Verdict::kGood);
  EXPECT_EQ(open(senders, message_of(2, 9), &opened), Verdict::kGood);
  EXPECT_TRUE(senders.due(early));
  EXPECT_EQ(open(senders, message_of(3, 0), &opened), Verdict::kReplayed);
  EXPECT_EQ(open(senders, message_of(0, 0, 99), &opened), Verdict::kStranger);
}

TEST(OfiWire, GreetingsOpenWheneverTheyComeAndOnlyUnchanged) {
  Senders senders = senders_of(kKey, kReceiver);
  Opened opened;
  const Greeting greeting{77, Greeting::kAsks | Greeting::kAnswers, {3, 4}};
  const MessageHeader header = make_greeting_header(kKey, kSender, kReceiver, greeting);
  std::vector<unsigned char> good(sizeof header + sizeof greeting);
  std::memcpy(good.data(), &header, sizeof header);
  std::memcpy(good.data() + sizeof header, &greeting, sizeof greeting);
  for (const uint64_t sequence : {1, 2}) {
    EXPECT_EQ(senders.open_message(good, &opened), Verdict::kGreeting);
    EXPECT_EQ(opened.sender, kSender);
    ASSERT_EQ(opened.message.size(), sizeof greeting);
    EXPECT_EQ(std::memcmp(opened.message.data(), &greeting, sizeof greeting), 0);
    EXPECT_EQ(open(senders, message_of(sequence, 5), &opened), Verdict::kGood);
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
  Senders elsewhere = senders_of(kKey, kReceiver + 1);
  EXPECT_EQ(elsewhere.open_message(good, &opened), Verdict::kStranger);
}

TEST(OfiWire, MessagesForOthersOrOfOthersAreStrange) {
  Opened opened;
  auto message = message_of(1, 16);
  Senders elsewhere = senders_of(kKey, kReceiver + 1);
  EXPECT_EQ(elsewhere.open_message(message, &opened), Verdict::kStranger);
  Senders other_job = senders_of({{1, 2}}, kReceiver);
  EXPECT_EQ(other_job.open_message(message, &opened), Verdict::kStranger);
}

TEST(OfiWire, NoChangeOfAHeaderAndNoLengthGetsThrough) {
  Senders senders = senders_of(kKey, kReceiver);
  Opened opened;
  auto good = message_of(1, 40);
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

}  // namespace
}  // namespace mobius::transport::ofi
