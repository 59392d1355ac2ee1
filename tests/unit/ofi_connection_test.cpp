// SPDX-License-Identifier: BSD-3-Clause

// How connections are made, in particular when both ends begin at the same time and libfabric makes
// one connection out of two.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ofi_pair.h"
#include "os/sync/futex.h"
#include "shared_processes.h"

namespace mobius::transport::ofi {
namespace {

using mobius_test::Children;
using mobius_test::End;
using mobius_test::loopback;
using mobius_test::missing;
using mobius_test::Pair;
using mobius_test::port_of;

class OfiConnection : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// Connects both ends to a process that then dies, and lets both notice the death.
void outlive_somebody(Pair& pair, Children& children, const char* provider) {
  int line[2];
  ASSERT_EQ(pipe(line), 0);
  const auto left = pair.left.endpoint.address(), right = pair.right.endpoint.address();
  const uint64_t word = 3;
  const Piece piece = {&word, sizeof word};
  children.start([&] {
    End end;
    PeerId peers[2];
    if (end.open(loopback(provider)) != MOB_OK ||
        end.endpoint.add_peer(left, &peers[0]) != MOB_OK ||
        end.endpoint.add_peer(right, &peers[1]) != MOB_OK) {
      return false;
    }
    const auto own = end.endpoint.address();
    if (write(line[1], own.data(), own.size()) != static_cast<ssize_t>(own.size())) return false;
    while (end.received.size() < 2) end.endpoint.poll();
    for (const PeerId peer : peers) {
      while (end.endpoint.send(peer, {&piece, 1}) == Posted::kAgain) end.endpoint.poll();
    }
    while (end.received.size() < 4) end.endpoint.poll();
    return true;
  });
  std::vector<unsigned char> address(1024);
  const ssize_t bytes = read(line[0], address.data(), address.size());
  ASSERT_GT(bytes, 0);
  address.resize(static_cast<size_t>(bytes));
  close(line[0]);
  close(line[1]);
  for (End* end : {&pair.left, &pair.right}) {
    PeerId peer = 0;
    ASSERT_EQ(end->endpoint.add_peer(address, &peer), MOB_OK) << mob_last_error();
    pair.insist([&] { return end->endpoint.send(peer, {&piece, 1}); });
  }
  pair.until([&] { return !pair.left.received.empty() && !pair.right.received.empty(); });
  for (End* end : {&pair.left, &pair.right}) {
    pair.insist([&] { return end->endpoint.send(1, {&piece, 1}); });
    end->received.clear();
  }
  for (int i = 0; i < 50; ++i) {
    pair.poll();
    usleep(1000);
  }
  children.expect_success();
  for (int i = 0; i < 20; ++i) pair.poll();
}

// libfabric's TCP providers store the process number of a connection's peer where they store the
// next one's. They then took a request that had been given up for a request of a new process: an
// endpoint that had lost a peer closed the good connection of two endpoints that had begun at once.
TEST_P(OfiConnection, ComesAboutAtBothEndsAtOnceAfterADeath) {
  const uint64_t word = 5;
  const Piece piece = {&word, sizeof word};
  Children children;
  Pair pair(GetParam());
  ASSERT_NO_FATAL_FAILURE(outlive_somebody(pair, children, GetParam()));
  // The request of the larger address wins, and is answered while the other request is still
  // unread.
  const bool left_wins = port_of(pair.left.endpoint) > port_of(pair.right.endpoint);
  End& wins = left_wins ? pair.left : pair.right;
  End& yields = left_wins ? pair.right : pair.left;
  const auto begin = [&](End& end, End& then) {
    EXPECT_EQ(end.endpoint.send(end.peer, {&piece, 1}), Posted::kAgain);
    for (int i = 0; i < 5; ++i) then.endpoint.poll();
  };
  begin(yields, wins);  // it sees the request come, and does not know its sender yet
  begin(wins, wins);    // asks
  for (int i = 0; i < 5; ++i) yields.endpoint.poll();  // asks too, and finds that it must not
  for (uint64_t sent = 1; sent <= 20; ++sent) {
    pair.send(wins, {piece});
    pair.send(yields, {piece});
    pair.until([&] { return wins.received.size() == sent && yields.received.size() == sent; });
    if (HasFailure()) return;
  }
}

TEST_P(OfiConnection, AnUnknownPeerShowsItsCard) {
  Options options = loopback(GetParam());
  options.card = 0x1234'5678'9abc'def0;
  End host, guest;
  ASSERT_EQ(host.open(loopback(GetParam())), MOB_OK) << mob_last_error();
  ASSERT_EQ(guest.open(options), MOB_OK) << mob_last_error();
  guest.peer = guest.add(host);
  std::vector<uint64_t> cards;
  host.on_greeting = [&](uint64_t card) {
    cards.push_back(card);
    if (cards.size() == 2) host.peer = host.add(guest);
  };
  const uint64_t word = 5;
  const Piece piece = {&word, sizeof word};
  // It repeats its question while there is no answer, and sends nothing before.
  while (guest.endpoint.send(guest.peer, {&piece, 1}) == Posted::kAgain) {
    EXPECT_TRUE(host.received.empty());
    host.endpoint.poll();
    guest.endpoint.poll();
  }
  EXPECT_EQ(cards, (std::vector<uint64_t>{options.card, options.card}));
  while (host.received.empty() && guest.failed.empty()) {
    host.endpoint.poll();
    guest.endpoint.poll();
  }
  EXPECT_TRUE(guest.failed.empty());
  EXPECT_EQ(host.received, (std::vector<std::vector<unsigned char>>{{5, 0, 0, 0, 0, 0, 0, 0}}));
}

// Each attempt makes a new connection there, for which libfabric keeps memory for good.
TEST_P(OfiConnection, APeerThatRefusesConnectionsIsTriedLessAndLessOften) {
  End end, gone;
  ASSERT_EQ(gone.open(loopback(GetParam())), MOB_OK);
  ASSERT_EQ(end.open(loopback(GetParam())), MOB_OK);
  const PeerId peer = end.add(gone);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of(gone.endpoint));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  gone.endpoint.close();
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ASSERT_EQ(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 64), 0);
  const uint64_t word = 1;
  const Piece piece = {&word, sizeof word};
  int tries = 0;
  const uint64_t end_ns = os::now_ns() + 300'000'000;
  while (os::now_ns() < end_ns) {
    ASSERT_EQ(end.endpoint.send(peer, {&piece, 1}), Posted::kAgain) << mob_last_error();
    end.endpoint.poll();
    const int stranger = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (stranger < 0) continue;
    ++tries;
    close(stranger);
  }
  close(listener);
  EXPECT_GE(tries, 2);
  EXPECT_LE(tries, 80);  // a quarter more time for each, from 20 ms on
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiConnection, ::testing::Values("tcp;ofi_rxm", "net"),
                         [](const auto& provider) {
                           std::string name = provider.param;
                           for (char& letter : name) letter = letter == ';' ? '_' : letter;
                           return name;
                         });

}  // namespace
}  // namespace mobius::transport::ofi
