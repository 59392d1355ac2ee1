// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "job/meeting/channel.h"
#include "job/meeting/far_port.h"
#include "job/meeting/meeting_directory.h"
#include "job/meeting/port_text.h"
#include "job/port.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

// A limit that only a hang comes to.
constexpr uint64_t kLimitS = 60;

Secret secret_of(unsigned char first) {
  Secret secret{};
  secret[0] = first;
  return secret;
}

PortWait patient() {
  return {os::now_ns() + kLimitS * 1'000'000'000, [] {}, [] { return MOB_OK; }};
}

// Two ends of one connection.
struct Pair {
  Channel listener;
  Channel visitor;
};

std::array<int, 2> two_ends() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return ends;
}

Pair connected(const Secret& a, const Secret& b) {
  const std::array<int, 2> ends = two_ends();
  return {Channel(os::HeldDescriptor{ends[0]}, a, true),
          Channel(os::HeldDescriptor{ends[1]}, b, false)};
}

// Moves bytes until a frame has come or a connection has ended.
bool heard(Channel& from, Channel& to, Frame* frame) {
  while (true) {
    from.pump();
    const bool is_open = to.pump();
    if (to.take(frame)) return true;
    if (!is_open) return false;
  }
}

TEST(PortText, CarriesTheKeyAndTheAddresses) {
  PortText port;
  port.key = secret_of(7);
  EXPECT_EQ(port.text(), "mobius-port-07000000000000000000000000000000");
  ASSERT_TRUE(parse_far_text("@41233,192.0.2.3,fd00::2", &port.addresses));
  EXPECT_EQ(port.text(), "mobius-port-07000000000000000000000000000000@41233,192.0.2.3,fd00::2");
  PortText read;
  ASSERT_TRUE(parse_port_text(port.text(), &read));
  EXPECT_EQ(read.key, port.key);
  ASSERT_EQ(read.addresses.size(), 2U);
  EXPECT_EQ(read.text(), port.text());
  // As many addresses as there is room for.
  EXPECT_EQ(port.far_text(17), "@41233,192.0.2.3");
  EXPECT_EQ(port.far_text(9), "");
}

TEST(PortText, OtherTextsAreNone) {
  PortText port;
  const std::string key = "mobius-port-07000000000000000000000000000000";
  for (const std::string& text :
       {std::string("store"), std::string("mobius-port-07"), key + "@", key + "@0,192.0.2.3",
        key + "@70000,192.0.2.3", key + "@41233", key + "@41233,", key + "@41233,host",
        key + "@41233,192.0.2.3,", key + "x"}) {
    EXPECT_FALSE(parse_port_text(text, &port)) << text;
  }
}

TEST(Channel, FramesComeInOrderWithTheirBytes) {
  Pair pair = connected(secret_of(1), secret_of(1));
  const Frame large(300'000, 'x');
  const Frame empty;
  pair.listener.queue(large);
  pair.listener.queue(empty);
  Frame frame;
  ASSERT_TRUE(heard(pair.listener, pair.visitor, &frame));
  EXPECT_EQ(frame, large);
  ASSERT_TRUE(heard(pair.listener, pair.visitor, &frame));
  EXPECT_TRUE(frame.empty());
  pair.visitor.queue(Frame{1, 2, 3});
  ASSERT_TRUE(heard(pair.visitor, pair.listener, &frame));
  EXPECT_EQ(frame, (Frame{1, 2, 3}));
  pair.visitor.close();
  EXPECT_FALSE(heard(pair.visitor, pair.listener, &frame));
}

TEST(Channel, AnotherKeyEndsTheConnection) {
  Pair pair = connected(secret_of(1), secret_of(2));
  pair.listener.queue(Frame{1});
  Frame frame;
  EXPECT_FALSE(heard(pair.listener, pair.visitor, &frame));
  EXPECT_FALSE(pair.visitor.is_open());
}

// What one end has sent is no frame from the other end, nor one of another time.
TEST(Channel, FramesAreNotTakenTwiceOrBack) {
  std::array<int, 2> ends = two_ends();
  Channel sender(os::HeldDescriptor{ends[0]}, secret_of(1), true);
  sender.queue(Frame{1, 2, 3});
  ASSERT_TRUE(sender.pump());
  unsigned char bytes[64];
  const ssize_t got = read(ends[1], bytes, sizeof bytes);
  ASSERT_GT(got, 0);
  ASSERT_EQ(write(ends[1], bytes, static_cast<size_t>(got)), got);
  EXPECT_FALSE(sender.pump());
  close(ends[1]);
  std::array<int, 2> copies = two_ends();
  Channel receiver(os::HeldDescriptor{copies[0]}, secret_of(1), false);
  Frame frame;
  ASSERT_EQ(write(copies[1], bytes, static_cast<size_t>(got)), got);
  EXPECT_TRUE(receiver.pump() && receiver.take(&frame));
  ASSERT_EQ(write(copies[1], bytes, static_cast<size_t>(got)), got);
  EXPECT_FALSE(receiver.pump());
  close(copies[1]);
}

TEST(MeetingDirectory, AllGetWhatAllHavePublished) {
  constexpr mob_rank_t kSize = 4;
  constexpr mob_rank_t kCollector = 1;
  std::vector<Channel> centre(kSize);
  std::vector<Channel> ends(kSize);
  for (mob_rank_t rank = 0; rank < kSize; ++rank) {
    if (rank == kCollector) continue;
    Pair pair = connected(secret_of(1), secret_of(1));
    centre[static_cast<size_t>(rank)] = std::move(pair.listener);
    ends[static_cast<size_t>(rank)] = std::move(pair.visitor);
  }
  std::vector<std::thread> threads;
  for (mob_rank_t rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<Channel> own;
      if (rank == kCollector) {
        own = std::move(centre);
      } else {
        own.push_back(std::move(ends[static_cast<size_t>(rank)]));
      }
      MeetingDirectory directory(rank, kSize, std::move(own), [] {}, kLimitS);
      for (unsigned char round = 0; round < 3; ++round) {
        const std::string key = "key" + std::to_string(round);
        const std::vector<unsigned char> mine(static_cast<size_t>(rank), round);
        EXPECT_EQ(directory.publish(key, mine), MOB_OK);
        EXPECT_EQ(directory.fence(), MOB_OK);
        for (mob_rank_t other = 0; other < kSize; ++other) {
          std::vector<unsigned char> theirs;
          EXPECT_EQ(directory.fetch(other, key, &theirs), MOB_OK);
          EXPECT_EQ(theirs, std::vector<unsigned char>(static_cast<size_t>(other), round));
        }
        std::vector<unsigned char> none;
        EXPECT_EQ(directory.fetch(0, "another", &none), MOB_ERR_PEER);
      }
      // One gives up: nobody passes the next fence.
      if (rank == kSize - 1) return directory.leave();
      EXPECT_EQ(directory.fence(), MOB_ERR_PEER);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What a stranger sends to the port does not keep others from meeting there.
void shout_at(const sockaddr_storage& address) {
  for (const size_t bytes : {size_t{0}, size_t{10}, sizeof(Message), size_t{400}}) {
    os::HeldDescriptor stranger = os::start_connection(address);
    pollfd there{stranger.get(), POLLOUT, 0};
    ASSERT_EQ(poll(&there, 1, -1), 1);
    const std::string noise(bytes, 'x');
    if (bytes != 0) os::send_some(stranger.get(), noise.data(), bytes);
  }
}

TEST(FarPort, ThoseThatKnowTheKeyMeet) {
  Port port;
  ASSERT_EQ(port.open("test", "", {false, true, "lo"}), MOB_OK);
  const PortText text = port.text();
  ASSERT_EQ(text.addresses.size(), 1U);
  shout_at(text.addresses[0]);
  std::thread other([&] {
    FarAnswer answer;
    FarGreeting greeting{MessageType::kConnect, 0, 1, secret_of(9)};
    const auto visited = [&] {
      return visit_far("test", text.addresses, greeting, patient(), &answer);
    };
    EXPECT_EQ(visited(), MOB_ERR_PEER);  // not the port's key
    greeting.key = text.key;
    ASSERT_EQ(visited(), MOB_OK);
    EXPECT_EQ(answer.rank, 0);
    EXPECT_EQ(answer.size, 2);
    // The second process of the job that accepts.
    FarAnswer second;
    greeting = {MessageType::kMember, 1, 3, answer.meeting};
    ASSERT_EQ(visit_far("test", text.addresses, greeting, patient(), &second), MOB_OK);
    answer.channel.queue(Frame{2});
    second.channel.queue(Frame{1});
    Frame frame;
    EXPECT_TRUE(answer.channel.pump() && second.channel.pump());
    while (answer.channel.pump()) {
    }
  });
  Visitor visitor;
  ASSERT_EQ(port.accept("test", patient(), &visitor), MOB_OK);
  ASSERT_TRUE(visitor.is_far);
  EXPECT_EQ(visitor.count, 1);
  const Secret key = meeting_key(text.key, visitor.far.challenge, visitor.far.nonce);
  std::vector<Channel> channels;
  ASSERT_EQ(port.hold_meeting("test", patient(), visitor.far, key, 0, 2, 3, &channels), MOB_OK);
  for (const unsigned char rank : {1, 2}) {
    Frame frame;
    while (!channels[rank].take(&frame)) ASSERT_TRUE(channels[rank].pump());
    EXPECT_EQ(frame, Frame{rank});
  }
  channels.clear();
  other.join();
}

TEST(FarPort, APortThatIsClosedIsNotReached) {
  std::vector<sockaddr_storage> addresses;
  {
    Port port;
    ASSERT_EQ(port.open("test", "", {false, true, "lo"}), MOB_OK);
    addresses = port.text().addresses;
  }
  FarAnswer answer;
  const FarGreeting greeting{MessageType::kConnect, 0, 1, secret_of(1)};
  EXPECT_EQ(visit_far("test", addresses, greeting, patient(), &answer), MOB_ERR_PEER);
  EXPECT_NE(std::strstr(mob_last_error(), "no such port is open"), nullptr);
}

}  // namespace
}  // namespace mobius::job
