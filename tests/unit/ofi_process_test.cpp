// SPDX-License-Identifier: BSD-3-Clause

// Endpoints of two processes that sleep on their descriptors or die, and peers that are not
// endpoints.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "ofi_pair.h"
#include "shared_processes.h"

namespace mobius::transport::ofi {
namespace {

using mobius_test::Children;
using mobius_test::End;
using mobius_test::loopback;
using mobius_test::missing;
using mobius_test::Pair;
using mobius_test::pattern;
using mobius_test::port_of;

// A stream between parent and child, for exchanging addresses.
struct Line {
  int ends[2] = {-1, -1};
  Line() {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  }
  ~Line() {
    for (const int end : ends) close(end);
  }
};

bool tell(int line, const std::vector<unsigned char>& bytes) {
  return write(line, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

std::vector<unsigned char> hear(int line) {
  std::vector<unsigned char> bytes(1024);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, read(line, bytes.data(), bytes.size()))));
  return bytes;
}

// Opens an endpoint and exchanges addresses with the other process.
bool meet(End& end, const Options& options, int line) {
  return end.open(options) == MOB_OK && tell(line, end.endpoint.address()) &&
         end.endpoint.add_peer(hear(line), &end.peer) == MOB_OK;
}

// Polls until `done`, and sleeps whenever that is allowed.
void sleep_until(End& end, const std::function<bool()>& done) {
  while (!done()) {
    if (end.endpoint.poll() || !end.endpoint.ready_to_sleep()) continue;
    pollfd wait = {end.endpoint.descriptor(), POLLIN, 0};
    ::poll(&wait, 1, -1);
  }
}

bool send_asleep(End& end, std::span<const Piece> pieces) {
  while (true) {
    const Posted posted = end.endpoint.send(end.peer, pieces);
    if (posted != Posted::kAgain) return posted == Posted::kDone;
    if (end.endpoint.poll() || !end.endpoint.ready_to_sleep()) continue;
    pollfd wait = {end.endpoint.descriptor(), POLLIN, 0};
    // Room may be made without an event; then this is a pause.
    ::poll(&wait, 1, 1);
  }
}

class OfiProcesses : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  Line line_;
  Children children_;
};

TEST_P(OfiProcesses, SleepersAreWokenByEveryMessage) {
  constexpr uint64_t kTurns = 2000;
  const auto size_of = [](uint64_t turn) { return turn % 50 == 7 ? size_t{60'000} : size_t{8}; };
  const auto side = [&](int line, bool first) {
    End end;
    if (!meet(end, loopback(GetParam()), line)) return false;
    const std::vector<unsigned char> bytes(65'536, 1);
    bool good = true;
    for (uint64_t turn = 1; turn <= kTurns; ++turn) {
      const Piece piece = {bytes.data(), size_of(turn)};
      if (first) good = good && send_asleep(end, {&piece, 1});
      sleep_until(end, [&] { return end.received.size() == 1 || !end.failed.empty(); });
      good = good && end.failed.empty() && end.received[0].size() == size_of(turn);
      if (!good) return false;
      end.received.clear();
      if (!first) good = good && send_asleep(end, {&piece, 1});
    }
    // The last message may still be under way when its sender is done.
    tell(line, {1});
    pollfd other = {line, POLLIN, 0};
    while (::poll(&other, 1, 0) == 0) end.endpoint.poll();
    return good;
  };
  children_.start([&] { return side(line_.ends[1], false); });
  EXPECT_TRUE(side(line_.ends[0], true)) << mob_last_error();
  children_.expect_success();
}

TEST_P(OfiProcesses, ReadsAndWritesAreServedBySleepers) {
  children_.start([&] {
    End end;
    const int line = line_.ends[1];
    std::vector<unsigned char> memory(1 << 20, 3);
    Registration registration;
    if (!meet(end, loopback(GetParam()), line) ||
        end.endpoint.register_memory(memory.data(), memory.size(), &registration) != MOB_OK) {
      return false;
    }
    const uint64_t words[] = {registration.base, registration.key};
    const Piece piece = {words, sizeof words};
    if (!send_asleep(end, {&piece, 1})) return false;
    sleep_until(end, [&] { return !end.received.empty() || !end.failed.empty(); });
    return end.failed.empty() && std::count(memory.begin(), memory.end(), 4) == (1 << 20);
  });
  End end;
  ASSERT_TRUE(meet(end, loopback(GetParam()), line_.ends[0])) << mob_last_error();
  // A connection is made only when something is sent.
  sleep_until(end, [&] { return !end.received.empty(); });
  uint64_t words[2];
  ASSERT_EQ(end.received[0].size(), sizeof words);
  std::memcpy(words, end.received[0].data(), sizeof words);
  std::vector<unsigned char> there(1 << 20), here(1 << 20, 4);
  uint64_t operation = 0;
  for (const bool write : {false, true}) {
    for (size_t at = 0; at < here.size(); at += 1 << 16) {
      ++operation;
      while (true) {
        const Posted posted = write ? end.endpoint.write(end.peer, here.data() + at, 1 << 16,
                                                         words[0] + at, words[1], operation)
                                    : end.endpoint.read(end.peer, there.data() + at, 1 << 16,
                                                        words[0] + at, words[1], operation);
        ASSERT_NE(posted, Posted::kFailed) << mob_last_error();
        if (posted == Posted::kDone) break;
        end.endpoint.poll();
      }
    }
    sleep_until(end, [&] { return end.ended.size() == operation || !end.failed.empty(); });
    for (const End::Ended& ended : end.ended) EXPECT_EQ(ended.status, MOB_OK) << ended.text;
  }
  EXPECT_EQ(there, std::vector<unsigned char>(1 << 20, 3));
  const Piece piece = {words, 8};
  ASSERT_TRUE(send_asleep(end, {&piece, 1}));
  children_.expect_success();
}

TEST_P(OfiProcesses, DeathOfAPeerIsReportedOnceAndEndsWhatIsUnderWay) {
  // The child answers the first message, then only polls.
  const pid_t child = children_.start([&] {
    End end;
    std::vector<unsigned char> memory(4096, 3);
    Registration registration;
    if (!meet(end, loopback(GetParam()), line_.ends[1]) ||
        end.endpoint.register_memory(memory.data(), memory.size(), &registration) != MOB_OK) {
      return false;
    }
    const uint64_t words[] = {registration.base, registration.key};
    const Piece piece = {words, sizeof words};
    while (end.endpoint.send(end.peer, {&piece, 1}) == Posted::kAgain) end.endpoint.poll();
    while (end.received.empty()) end.endpoint.poll();
    tell(line_.ends[1], {1});
    while (true) pause();
    return true;
  });
  End end;
  ASSERT_TRUE(meet(end, loopback(GetParam()), line_.ends[0])) << mob_last_error();
  sleep_until(end, [&] { return !end.received.empty(); });
  uint64_t words[2];
  std::memcpy(words, end.received[0].data(), sizeof words);
  const Piece piece = {words, 8};
  ASSERT_TRUE(send_asleep(end, {&piece, 1}));
  pollfd answer = {line_.ends[0], POLLIN, 0};
  while (::poll(&answer, 1, 0) == 0) end.endpoint.poll();
  // No process serves this.
  std::vector<unsigned char> here(4096);
  ASSERT_EQ(end.endpoint.read(end.peer, here.data(), 4096, words[0], words[1], 77), Posted::kDone);
  for (int i = 0; i < 100; ++i) end.endpoint.poll();
  ASSERT_TRUE(end.ended.empty());
  children_.kill_one(child);

  Posted posted = Posted::kDone;
  while (posted != Posted::kFailed || end.failed.empty() || end.ended.empty()) {
    posted = end.endpoint.send(end.peer, {&piece, 1});
    end.endpoint.poll();
  }
  const std::string said = mob_last_error();
  EXPECT_NE(said.find(GetParam()), std::string::npos) << said;
  EXPECT_NE(said.find("127.0.0.1:"), std::string::npos) << said;
  for (int i = 0; i < 1000; ++i) end.endpoint.poll();
  EXPECT_EQ(end.failed.size(), 1u);
  EXPECT_EQ(end.failed[0].first, end.peer);
  ASSERT_EQ(end.ended.size(), 1u);
  EXPECT_EQ(end.ended[0].operation, 77u);
  EXPECT_EQ(end.ended[0].status, MOB_ERR_PEER);
  EXPECT_EQ(end.ended[0].text, end.failed[0].second);
}

TEST_P(OfiProcesses, PeerThatWasNeverThereIsReported) {
  End end, gone;
  ASSERT_EQ(gone.open(loopback(GetParam())), MOB_OK);
  ASSERT_EQ(end.open(loopback(GetParam())), MOB_OK);
  const PeerId peer = end.add(gone);
  gone.endpoint.close();
  const uint64_t word = 1;
  const Piece piece = {&word, sizeof word};
  while (end.failed.empty()) {
    end.endpoint.send(peer, {&piece, 1});
    end.endpoint.poll();
  }
  EXPECT_NE(end.failed[0].second.find("refused"), std::string::npos) << end.failed[0].second;
}

int connect_to(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(plain, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ADD_FAILURE() << "port " << port << ": " << std::strerror(errno);
  }
  return plain;
}

TEST_P(OfiProcesses, StrangersWithPlainSocketsDisturbNobody) {
  Pair pair(GetParam());
  const uint64_t word = 5;
  uint64_t sent = 0;
  const auto check = [&] {
    for (int i = 0; i < 20; ++i, ++sent) pair.send(pair.left, {{&word, sizeof word}});
    pair.until([&] { return pair.right.received.size() == sent; });
  };
  const uint16_t port = port_of(pair.right.endpoint);
  ASSERT_NE(port, 0);
  // The first ones come before the pair has a connection, the others after.
  std::vector<int> plain;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const int stranger = connect_to(port);
    auto bytes = pattern(seed % 7 == 0 ? 0 : 1 + seed * seed * 3, seed);
    if (seed % 3 == 1) std::fill(bytes.begin(), bytes.end(), seed % 2 == 0 ? 0 : 0xff);
    if (!bytes.empty()) {
      send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (seed % 2 == 0) {
      close(stranger);
    } else {
      plain.push_back(stranger);  // stays connected, and sends nothing more
    }
    if (seed == 5 || seed % 20 == 19) check();
    for (int i = 0; i < 20; ++i) pair.poll();
  }
  check();
  for (const int stranger : plain) close(stranger);
  check();
  EXPECT_EQ(pair.right.received.back().size(), sizeof word);
}

TEST_P(OfiProcesses, ManyThreadsSendWhileOneSleeps) {
  constexpr uint64_t kThreads = 4, kEach = 500;
  children_.start([&] {
    End end;
    if (!meet(end, loopback(GetParam()), line_.ends[1])) return false;
    uint64_t next[kThreads] = {}, got = 0;
    bool good = true;
    end.on_message = [&](const unsigned char* message, size_t) {
      uint64_t words[2];
      std::memcpy(words, message, sizeof words);
      good = good && words[0] < kThreads && words[1] == next[words[0]]++;
      ++got;
    };
    sleep_until(end, [&] { return got == kThreads * kEach || !good || !end.failed.empty(); });
    tell(line_.ends[1], {1});
    return good && end.failed.empty();
  });
  End end;
  ASSERT_TRUE(meet(end, loopback(GetParam()), line_.ends[0])) << mob_last_error();
  std::atomic<bool> good = true;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach && good; ++i) {
        std::vector<uint64_t> words(i % 10 == 3 ? 2000 : 2, 0);
        words[0] = thread;
        words[1] = i;
        const Piece piece = {words.data(), words.size() * sizeof(uint64_t)};
        if (!send_asleep(end, {&piece, 1})) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(good);
  pollfd answer = {line_.ends[0], POLLIN, 0};
  while (::poll(&answer, 1, 0) == 0) end.endpoint.poll();
  children_.expect_success();
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiProcesses, ::testing::Values("tcp;ofi_rxm", "net"),
                         [](const auto& provider) {
                           std::string name = provider.param;
                           for (char& letter : name) letter = letter == ';' ? '_' : letter;
                           return name;
                         });

}  // namespace
}  // namespace mobius::transport::ofi
