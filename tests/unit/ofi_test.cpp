// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "ofi_pair.h"

namespace mobius::transport::ofi {
namespace {

using mobius_test::End;
using mobius_test::loopback;
using mobius_test::Pair;
using mobius_test::pattern;

class OfiEndpoint : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = mobius_test::missing(GetParam()); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
};

TEST_P(OfiEndpoint, MessagesOfAllSizesArriveWholeAndInOrder) {
  Pair pair(GetParam());
  std::vector<size_t> sizes(130);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (size_t size = 200; size < pair.left.endpoint.message_bytes(); size += size / 3) {
    sizes.push_back(size);
  }
  sizes.push_back(pair.left.endpoint.message_bytes());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto bytes = pattern(sizes[i], i);
    // Three pieces, one of them empty.
    const size_t half = bytes.size() / 2;
    pair.send(pair.left,
              {{bytes.data(), half}, {nullptr, 0}, {bytes.data() + half, bytes.size() - half}});
  }
  pair.until([&] { return pair.right.received.size() == sizes.size(); });
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_EQ(pair.right.received[i], pattern(sizes[i], i)) << "message " << i;
  }
  EXPECT_TRUE(pair.right.aligned);
}

TEST_P(OfiEndpoint, MessagesInBuffersArriveAndLeaveOthers) {
  Pair pair(GetParam());
  MessageBuffer buffer;
  ASSERT_EQ(pair.left.endpoint.make_buffer(&buffer), MOB_OK) << mob_last_error();
  constexpr size_t kMessages = 300;
  std::vector<std::vector<unsigned char>> sent;
  for (size_t i = 0; i < kMessages; ++i) {
    sent.push_back(pattern(i % 7 == 0 ? pair.left.endpoint.message_bytes()
                                      : i * 331 % pair.left.endpoint.message_bytes(),
                           i));
    const auto& bytes = sent.back();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.message) % 16, 0u);
    std::copy(bytes.begin(), bytes.end(), buffer.message);
    pair.insist(
        [&] { return pair.left.endpoint.send_buffer(pair.left.peer, bytes.size(), &buffer); });
  }
  pair.until([&] { return pair.right.received.size() == kMessages; });
  EXPECT_EQ(pair.right.received, sent);
  EXPECT_EQ(pair.left.endpoint.send_buffer(pair.left.peer, pair.left.endpoint.message_bytes() + 1,
                                           &buffer),
            Posted::kFailed);
}

TEST_P(OfiEndpoint, MessagesSentInPlaceArriveAndEnd) {
  Pair pair(GetParam());
  constexpr uint64_t kMessages = 50;
  std::vector<std::vector<unsigned char>> kept;
  for (uint64_t i = 1; i <= kMessages; ++i) {
    kept.push_back(pattern(i * 1300 % pair.left.endpoint.message_bytes(), i));
    const auto& bytes = kept.back();
    // One piece; or the last of four, after three that the caller may reuse at once.
    std::vector<Piece> pieces = {{bytes.data(), bytes.size()}};
    std::vector<unsigned char> head(bytes.begin(), bytes.begin() + bytes.size() / 3);
    if (i % 2 == 0) {
      pieces = {{head.data(), head.size() / 2},
                {nullptr, 0},
                {head.data() + head.size() / 2, head.size() - head.size() / 2},
                {bytes.data() + head.size(), bytes.size() - head.size()}};
    }
    pair.insist([&] { return pair.left.endpoint.send_in_place(pair.left.peer, pieces, i); });
    head.assign(head.size(), 0xee);
  }
  pair.until([&] {
    return pair.right.received.size() == kMessages && pair.left.ended.size() == kMessages;
  });
  EXPECT_EQ(pair.right.received, kept);
  std::set<uint64_t> operations;
  for (const End::Ended& ended : pair.left.ended) {
    EXPECT_EQ(ended.status, MOB_OK) << ended.text;
    operations.insert(ended.operation);
  }
  EXPECT_EQ(operations.size(), kMessages);
}

TEST_P(OfiEndpoint, WritesAheadComeBeforeMessages) {
  Pair pair(GetParam());
  constexpr size_t kBytes = 700'001;
  constexpr uint64_t kRounds = 20;
  std::vector<unsigned char> target(kBytes, 0);
  Registration registration;
  ASSERT_EQ(pair.right.endpoint.register_memory(target.data(), kBytes, &registration), MOB_OK)
      << mob_last_error();
  const size_t most = pair.left.endpoint.description().ahead_bytes;
  EXPECT_EQ(most != 0, pair.left.endpoint.description().is_stream);
  const unsigned char byte = 0;
  if (most == 0) {
    EXPECT_EQ(pair.left.endpoint.write_ahead(pair.left.peer, &byte, 1, registration.base,
                                             registration.key, 1),
              Posted::kFailed);
  }
  for (uint64_t round = 1; most != 0 && round <= kRounds; ++round) {
    const auto data = pattern(round % 2 == 0 ? kBytes : 9, round);
    pair.insist([&] {
      return pair.left.endpoint.write_ahead(pair.left.peer, data.data(), data.size(),
                                            registration.base, registration.key, round);
    });
    pair.send(pair.left, {{&byte, 1}});
    // A write whose note has come must have arrived.
    pair.until([&] { return pair.right.received.size() == round; });
    ASSERT_TRUE(std::equal(data.begin(), data.end(), target.begin())) << round;
    pair.until([&] { return pair.left.ended.size() == round; });
    ASSERT_EQ(pair.left.ended.back().status, MOB_OK) << pair.left.ended.back().text;
  }
  pair.right.endpoint.unregister(registration);
}

TEST_P(OfiEndpoint, NotesComeWithWhatWasWritten) {
  Pair pair(GetParam());
  if (!pair.left.endpoint.description().notes_writes) GTEST_SKIP() << "no provider over TCP alone";
  constexpr size_t kBytes = 700'001;
  std::vector<unsigned char> target(kBytes, 0);
  Registration registration;
  ASSERT_EQ(pair.right.endpoint.register_memory(target.data(), kBytes, &registration), MOB_OK)
      << mob_last_error();
  std::vector<uint64_t> expected;
  for (uint64_t round = 1; round <= 20; ++round) {
    const auto data = pattern(round % 2 == 0 ? kBytes : 9, round);
    // Each third write has no note, so it is not reported.
    const uint64_t note = round % 3 == 0 ? 0 : UINT64_MAX - round;
    pair.insist([&] {
      return pair.left.endpoint.write_ahead(pair.left.peer, data.data(), data.size(),
                                            registration.base, registration.key, round, note);
    });
    if (note != 0) {
      expected.push_back(note);
      pair.until([&] { return pair.right.notes.size() == expected.size(); });
      ASSERT_TRUE(std::equal(data.begin(), data.end(), target.begin())) << round;
    }
    pair.until([&] { return pair.left.ended.size() == round; });
  }
  // Other kinds of write are not reported either.
  const unsigned char byte = 0;
  pair.insist([&] {
    return pair.left.endpoint.write(pair.left.peer, &byte, 1, registration.base, registration.key,
                                    21);
  });
  pair.until([&] { return pair.left.ended.size() == 21; });
  EXPECT_EQ(pair.right.notes, expected);
  pair.right.endpoint.unregister(registration);
}

// Writes and reads of many sizes at unaligned places, by a pair of endpoints.
void transfers_of_all_sizes(const Options& options) {
  Pair pair(options);
  constexpr size_t kBytes = 3 << 20;
  std::vector<unsigned char> target(kBytes, 0);
  Registration registration;
  ASSERT_EQ(pair.right.endpoint.register_memory(target.data(), kBytes, &registration), MOB_OK)
      << mob_last_error();
  uint64_t operation = 0;
  for (const size_t bytes : {0, 1, 7, 8, 64, 65, 1000, 4096, 65'537, 1'000'001, (3 << 20) - 5}) {
    const size_t offset = 5;
    const auto data = pattern(bytes, bytes);
    const auto done = [&] { return pair.left.ended.size() == operation; };
    ++operation;
    pair.insist([&] {
      return pair.left.endpoint.write(pair.left.peer, data.data(), bytes,
                                      registration.base + offset, registration.key, operation);
    });
    pair.until(done);
    ASSERT_EQ(pair.left.ended.back().status, MOB_OK) << pair.left.ended.back().text;
    ASSERT_TRUE(std::equal(data.begin(), data.end(), target.begin() + offset)) << bytes;
    std::vector<unsigned char> back(bytes + 2, 0xee);
    ++operation;
    pair.insist([&] {
      return pair.left.endpoint.read(pair.left.peer, back.data() + 1, bytes,
                                     registration.base + offset, registration.key, operation);
    });
    pair.until(done);
    ASSERT_EQ(pair.left.ended.back().status, MOB_OK) << pair.left.ended.back().text;
    ASSERT_TRUE(std::equal(data.begin(), data.end(), back.begin() + 1)) << bytes;
    EXPECT_EQ(back.front(), 0xee);
    EXPECT_EQ(back.back(), 0xee);
  }
  EXPECT_EQ(target[0], 0);
  pair.right.endpoint.unregister(registration);
  EXPECT_EQ(registration.handle, nullptr);
}

TEST_P(OfiEndpoint, TransfersOfAllSizes) { transfers_of_all_sizes(loopback(GetParam())); }

TEST_P(OfiEndpoint, TransfersOfAllSizesWhereWritesAreReadBack) {
  Options options = loopback(GetParam());
  options.visibility = Visibility::kReadBack;
  transfers_of_all_sizes(options);
}

TEST_P(OfiEndpoint, TransfersOfAllSizesWhereLocalMemoryIsRegistered) {
  Options options = loopback(GetParam());
  options.register_local = true;
  transfers_of_all_sizes(options);
}

TEST_P(OfiEndpoint, MemoryThatTransfersUseMayBeWithdrawn) {
  Options options = loopback(GetParam());
  options.register_local = true;
  Pair pair(options);
  constexpr size_t kBytes = 1 << 20;
  const auto data = pattern(kBytes, 1);
  std::vector<unsigned char> theirs = data;
  std::vector<unsigned char> ours(kBytes, 0);
  Registration there;
  ASSERT_EQ(pair.right.endpoint.register_memory(theirs.data(), kBytes, &there), MOB_OK);
  for (uint64_t i = 1; i <= 20; ++i) {
    Registration here;
    ASSERT_EQ(pair.left.endpoint.register_memory(ours.data(), kBytes, &here), MOB_OK);
    pair.insist([&] {
      return pair.left.endpoint.read(pair.left.peer, ours.data(), kBytes, there.base, there.key, i);
    });
    pair.left.endpoint.unregister(here);
    pair.until([&] { return pair.left.ended.size() == i; });
    ASSERT_EQ(pair.left.ended.back().status, MOB_OK) << pair.left.ended.back().text;
    ASSERT_EQ(ours, data);
    ours.assign(kBytes, 0);
  }
}

TEST_P(OfiEndpoint, FloodBothWaysEndsAndKeepsOrder) {
  Options options = loopback(GetParam());
  options.send_buffers = 6;
  options.receive_buffers = 6;
  options.short_messages = 10;
  Pair pair(options);
  constexpr uint64_t kMessages = 6000;
  struct Side {
    End* end;
    uint64_t sent = 0, got = 0;
    bool good = true;
  } sides[2] = {{&pair.left}, {&pair.right}};
  const auto size_of = [](uint64_t i) {
    return size_t{8} + (i * 7919) % (i % 16 == 0 ? 60'000 : 90);
  };
  for (Side& side : sides) {
    side.end->on_message = [&](const unsigned char* message, size_t bytes) {
      uint64_t number = 0;
      if (bytes >= sizeof number) std::memcpy(&number, message, sizeof number);
      side.good = side.good && number == side.got && bytes == size_of(number);
      ++side.got;
    };
  }
  std::vector<unsigned char> bytes(65'536);
  while ((sides[0].got < kMessages || sides[1].got < kMessages) && !::testing::Test::HasFailure()) {
    for (Side& side : sides) {
      while (side.sent < kMessages) {
        std::memcpy(bytes.data(), &side.sent, sizeof side.sent);
        const Piece piece = {bytes.data(), size_of(side.sent)};
        const Posted posted = side.end->endpoint.send(side.end->peer, {&piece, 1});
        ASSERT_NE(posted, Posted::kFailed) << mob_last_error();
        if (posted == Posted::kAgain) break;
        ++side.sent;
      }
      side.end->endpoint.poll();
      ASSERT_TRUE(side.end->failed.empty()) << side.end->failed[0].second;
    }
  }
  EXPECT_TRUE(sides[0].good);
  EXPECT_TRUE(sides[1].good);
}

// The number of messages that an endpoint takes for a peer that does not poll.
uint64_t fill(End& from, PeerId peer, size_t bytes) {
  const std::vector<unsigned char> data(bytes, 7);
  const Piece piece = {data.data(), bytes};
  uint64_t taken = 0;
  for (int refused = 0; refused < 20'000; ++refused) {
    while (from.endpoint.send(peer, {&piece, 1}) == Posted::kDone) {
      ++taken;
      refused = 0;
    }
    from.endpoint.poll();
  }
  return taken;
}

TEST_P(OfiEndpoint, PeerThatDoesNotPollIsSentABoundedAmountAndStopsNobodyElse) {
  for (const size_t bytes : {size_t{16}, size_t{60'000}}) {
    Pair pair(GetParam());
    End third;
    ASSERT_EQ(third.open(loopback(GetParam())), MOB_OK) << mob_last_error();
    const PeerId to_third = pair.left.add(third);
    third.peer = third.add(pair.left);
    // Connects, so that the following messages fill sockets and not connection queues.
    const uint64_t word = 0;
    pair.send(pair.left, {{&word, sizeof word}});
    pair.until([&] { return pair.right.received.size() == 1; });

    const uint64_t taken = fill(pair.left, pair.left.peer, bytes);
    EXPECT_GT(taken, 0u);
    // The endpoint's buffers, and those of two sockets of the kernel.
    EXPECT_LT(taken * bytes, size_t{40} << 20) << taken << " messages of " << bytes;

    const Piece piece = {&word, sizeof word};
    for (int i = 0; i < 100; ++i) {
      while (true) {
        const Posted posted = pair.left.endpoint.send(to_third, {&piece, 1});
        ASSERT_NE(posted, Posted::kFailed) << mob_last_error();
        if (posted == Posted::kDone) break;
        pair.left.endpoint.poll();
        third.endpoint.poll();
      }
    }
    while (third.received.size() < 100) {
      pair.left.endpoint.poll();
      third.endpoint.poll();
    }
    // The peer polls again: no message was lost.
    pair.until([&] { return pair.right.received.size() == 1 + taken; });
  }
}

// However many buffers are held for peers that were given up.
TEST_P(OfiEndpoint, PeersThatWereGivenUpLeaveRoomForOthers) {
  constexpr size_t kStuck = 10;
  constexpr uint64_t kMessages = 200;
  Options options = loopback(GetParam());
  options.send_buffers = 16;
  options.short_messages = 16;
  End left;
  ASSERT_EQ(left.open(options), MOB_OK) << mob_last_error();
  std::vector<std::unique_ptr<End>> others;
  const uint64_t word = 1;
  const Piece small = {&word, sizeof word};
  const auto send = [&](End& to, const Piece& piece) {
    while (true) {
      const Posted posted = left.endpoint.send(to.peer, {&piece, 1});
      ASSERT_NE(posted, Posted::kFailed) << mob_last_error();
      if (posted == Posted::kDone) return;
      left.endpoint.poll();
      to.endpoint.poll();
    }
  };
  for (size_t i = 0; i <= kStuck; ++i) {
    End& other = *others.emplace_back(std::make_unique<End>());
    ASSERT_EQ(other.open(options), MOB_OK) << mob_last_error();
    other.peer = left.add(other);
    other.add(left);
    send(other, small);
    while (other.received.empty()) {
      left.endpoint.poll();
      other.endpoint.poll();
    }
  }
  End& last = *others.back();
  for (size_t i = 0; i < kStuck; ++i) {
    fill(left, others[i]->peer, 60'000);
    fill(left, others[i]->peer, 16);
    left.endpoint.fail_peer(others[i]->peer, "its host is silent");
  }
  const std::vector<unsigned char> data(60'000, 7);
  const Piece large = {data.data(), data.size()};
  for (uint64_t i = 0; i < kMessages; ++i) send(last, i % 2 == 0 ? large : small);
  while (last.received.size() <= kMessages) {
    left.endpoint.poll();
    last.endpoint.poll();
  }
  EXPECT_EQ(left.failed.size(), kStuck);
}

TEST_P(OfiEndpoint, TransferOutsideRegisteredMemoryFailsAndTouchesNothing) {
  Pair pair(GetParam());
  std::vector<unsigned char> memory(3 * 4096, 1);
  Registration registration;
  ASSERT_EQ(pair.right.endpoint.register_memory(memory.data() + 4096, 4096, &registration), MOB_OK);
  const std::vector<unsigned char> data(8192, 2);
  struct {
    uint64_t offset, key;
    size_t bytes;
  } const wrong[] = {{0, registration.key + 1, 8}, {4090, registration.key, 8}};
  for (const auto& [offset, key, bytes] : wrong) {
    End other;
    ASSERT_EQ(other.open(loopback(GetParam())), MOB_OK);
    const PeerId peer = other.add(pair.right);
    pair.right.add(other);
    while (true) {
      const Posted posted =
          other.endpoint.write(peer, data.data(), bytes, registration.base + offset, key, 5);
      if (posted != Posted::kAgain) break;
      other.endpoint.poll();
      pair.right.endpoint.poll();
    }
    while (other.ended.empty()) {
      other.endpoint.poll();
      pair.right.endpoint.poll();
    }
    EXPECT_EQ(other.ended[0].operation, 5u);
    EXPECT_NE(other.ended[0].status, MOB_OK);
    EXPECT_NE(other.ended[0].text.find(GetParam()), std::string::npos) << other.ended[0].text;
    EXPECT_EQ(memory, std::vector<unsigned char>(3 * 4096, 1));
  }
  // Peers that behave are not affected.
  pair.insist([&] {
    return pair.left.endpoint.write(pair.left.peer, data.data(), 8, registration.base,
                                    registration.key, 6);
  });
  while (pair.left.ended.empty()) pair.poll();
  EXPECT_EQ(pair.left.ended[0].status, MOB_OK) << pair.left.ended[0].text;
  EXPECT_EQ(memory[4096 + 7], 2);
  EXPECT_EQ(memory[4096 + 8], 1);
}

// Providers look up keys while they poll, and some without a lock.
TEST_P(OfiEndpoint, KeysAreMadeAndWithdrawnWhileOthersAreUsed) {
  constexpr uint64_t kReads = 10'000;
  Pair pair(GetParam());
  std::vector<unsigned char> memory(4096, 1);
  Registration registration;
  ASSERT_EQ(pair.right.endpoint.register_memory(memory.data(), 4096, &registration), MOB_OK);
  std::atomic<bool> done{false};
  int refused = 0;
  std::thread changes([&] {
    std::vector<unsigned char> other(4096);
    while (!done.load()) {
      Registration many[16];
      for (Registration& one : many) {
        refused += pair.right.endpoint.register_memory(other.data(), 4096, &one) != MOB_OK;
      }
      for (Registration& one : many) pair.right.endpoint.unregister(one);
    }
  });
  unsigned char got[8];
  for (uint64_t i = 1; i <= kReads && pair.left.failed.empty(); ++i) {
    pair.insist([&] {
      return pair.left.endpoint.read(pair.left.peer, got, sizeof got, registration.base,
                                     registration.key, i);
    });
    pair.until([&] { return pair.left.ended.size() == i; });
  }
  done.store(true);
  changes.join();
  EXPECT_EQ(refused, 0);
  for (const End::Ended& each : pair.left.ended) ASSERT_EQ(each.status, MOB_OK) << each.text;
  pair.right.endpoint.unregister(registration);
}

TEST_P(OfiEndpoint, PeerThatWasGivenUpEndsWhatIsUnderWay) {
  Pair pair(GetParam());
  std::vector<unsigned char> memory(4096, 1);
  Registration registration;
  ASSERT_EQ(pair.right.endpoint.register_memory(memory.data(), 4096, &registration), MOB_OK);
  const uint64_t word = 0;
  pair.send(pair.left, {{&word, sizeof word}});
  pair.until([&] { return pair.right.received.size() == 1; });
  ASSERT_EQ(pair.left.endpoint.read(pair.left.peer, memory.data(), 8, registration.base,
                                    registration.key, 9),
            Posted::kDone);
  pair.left.endpoint.fail_peer(pair.left.peer, "its host is silent");
  pair.left.endpoint.fail_peer(pair.left.peer, "said twice");
  while (pair.left.failed.empty()) pair.left.endpoint.poll();
  ASSERT_EQ(pair.left.ended.size(), 1u);
  EXPECT_EQ(pair.left.ended[0].operation, 9u);
  EXPECT_EQ(pair.left.ended[0].status, MOB_ERR_PEER);
  for (int i = 0; i < 100; ++i) pair.poll();
  ASSERT_EQ(pair.left.failed.size(), 1u);
  EXPECT_NE(pair.left.failed[0].second.find("its host is silent"), std::string::npos);
  EXPECT_EQ(pair.left.ended.size(), 1u);
  const Piece piece = {&word, sizeof word};
  EXPECT_EQ(pair.left.endpoint.send(pair.left.peer, {&piece, 1}), Posted::kFailed);
  EXPECT_NE(std::string(mob_last_error()).find("127.0.0.1:"), std::string::npos)
      << mob_last_error();
}

TEST_P(OfiEndpoint, MessagesMadeWithAnotherKeyAreDropped) {
  Pair pair(GetParam());
  Options options = loopback(GetParam());
  options.key[3] ^= 1;
  End asker;  // gets no answer
  ASSERT_EQ(asker.open(options), MOB_OK);
  const PeerId asked = asker.add(pair.right);
  options.asks_first = false;
  End stranger;
  ASSERT_EQ(stranger.open(options), MOB_OK);
  const PeerId target = stranger.add(pair.right);
  const uint64_t word = 1;
  const Piece piece = {&word, sizeof word};
  uint64_t sent = 0;
  while (sent < 500) {
    const Posted posted = stranger.endpoint.send(target, {&piece, 1});
    ASSERT_NE(posted, Posted::kFailed);
    sent += posted == Posted::kDone ? 1 : 0;
    EXPECT_EQ(asker.endpoint.send(asked, {&piece, 1}), Posted::kAgain);
    stranger.endpoint.poll();
    asker.endpoint.poll();
    pair.right.endpoint.poll();
  }
  for (int i = 0; i < 10; ++i) pair.send(pair.left, {{&word, sizeof word}});
  pair.until([&] { return pair.right.received.size() == 10; });
  for (int i = 0; i < 1000; ++i) {
    stranger.endpoint.poll();
    pair.poll();
  }
  EXPECT_EQ(pair.right.received.size(), 10u);
}

TEST_P(OfiEndpoint, EndpointReachesItself) {
  End self;
  ASSERT_EQ(self.open(loopback(GetParam())), MOB_OK);
  const PeerId peer = self.add(self);
  const uint64_t word = 42;
  const Piece piece = {&word, sizeof word};
  for (int i = 0; i < 10; ++i) {
    while (self.endpoint.send(peer, {&piece, 1}) != Posted::kDone) {
      self.endpoint.poll();
      ASSERT_TRUE(self.failed.empty()) << self.failed[0].second;
    }
  }
  while (self.received.size() < 10) self.endpoint.poll();
}

TEST_P(OfiEndpoint, SleepsWhenThereIsNothingToDo) {
  Pair pair(GetParam());
  const uint64_t word = 0;
  for (int turn = 0; turn < 3; ++turn) {
    pair.send(pair.left, {{&word, sizeof word}});
    pair.send(pair.right, {{&word, sizeof word}});
    const auto more = pair.left.received.size() + 1;
    pair.until([&] { return pair.left.received.size() >= more; });
    // Until both could sleep at once: then all operations under way have ended.
    const auto asleep = [](End& end) {
      pollfd readable = {end.endpoint.descriptor(), POLLIN, 0};
      return !end.endpoint.poll() && end.endpoint.ready_to_sleep() && ::poll(&readable, 1, 0) == 0;
    };
    int quiet = 0;
    while (quiet < 100) quiet = asleep(pair.left) && asleep(pair.right) ? quiet + 1 : 0;
  }
  ASSERT_GE(pair.left.endpoint.descriptor(), 0);
}

TEST_P(OfiEndpoint, AddressesThatAreNoneAreRefused) {
  End end;
  ASSERT_EQ(end.open(loopback(GetParam())), MOB_OK);
  const std::vector<unsigned char> good = end.endpoint.address();
  EXPECT_LE(good.size(), 1024u);
  constexpr size_t kHeaderBytes = 64;
  PeerId peer = 0;
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_EQ(end.endpoint.add_peer({good.data(), bytes}, &peer), MOB_ERR_ARGUMENT) << bytes;
  }
  auto longer = good;
  longer.push_back(0);
  EXPECT_EQ(end.endpoint.add_peer(longer, &peer), MOB_ERR_ARGUMENT);
  auto old = good;
  old[0] ^= 1;
  EXPECT_EQ(end.endpoint.add_peer(old, &peer), MOB_ERR_ARGUMENT);
  auto other = good;
  other[kHeaderBytes] ^= 1;  // a letter of the provider's name
  EXPECT_EQ(end.endpoint.add_peer(other, &peer), MOB_ERR_SETTING);
  EXPECT_NE(std::string(mob_last_error()).find("MOBIUS_PROVIDER"), std::string::npos);
  // The whole address, but the provider would read bytes of the following fields as its own.
  for (const unsigned char bytes : {1, 8, 12}) {
    auto cut = good;
    cut[22] = static_cast<unsigned char>(cut[22] - bytes);  // length of the provider's address
    cut[21] = static_cast<unsigned char>(cut[21] + bytes);  // length of the host's name
    EXPECT_EQ(end.endpoint.add_peer(cut, &peer), MOB_ERR_ARGUMENT) << int{bytes};
  }
  auto family = good;
  family[kHeaderBytes + family[20]] ^= 1;
  EXPECT_EQ(end.endpoint.add_peer(family, &peer), MOB_ERR_ARGUMENT);
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    auto bad = good;
    for (int change = 0; change < 3; ++change)
      bad[random() % kHeaderBytes] = static_cast<unsigned char>(random());
    end.endpoint.add_peer(bad, &peer);
  }
  ASSERT_EQ(end.endpoint.add_peer(good, &peer), MOB_OK);
  EXPECT_NE(end.endpoint.peer_name(peer).find(end.endpoint.description().address),
            std::string::npos);
}

TEST_P(OfiEndpoint, WrongCallsAreExplained) {
  End end;
  ASSERT_EQ(end.open(loopback(GetParam())), MOB_OK);
  EXPECT_EQ(end.open(loopback(GetParam())), MOB_ERR_STATE);
  const PeerId self = end.add(end);
  const std::vector<unsigned char> bytes(end.endpoint.message_bytes() + 1);
  const Piece too_long = {bytes.data(), bytes.size()};
  EXPECT_EQ(end.endpoint.send(self, {&too_long, 1}), Posted::kFailed);
  EXPECT_NE(std::string(mob_last_error()).find(std::to_string(bytes.size())), std::string::npos);
  const Piece piece = {bytes.data(), 8};
  EXPECT_EQ(end.endpoint.send(self + 1, {&piece, 1}), Posted::kFailed);
  EXPECT_NE(std::string(mob_last_error()).find("no peer 1"), std::string::npos);
  Registration registration;
  EXPECT_EQ(end.endpoint.register_memory(nullptr, 8, &registration), MOB_ERR_ARGUMENT);
  end.endpoint.unregister(registration);
  end.endpoint.close();
  end.endpoint.close();
  EXPECT_FALSE(end.endpoint.is_open());
}

TEST(OfiChoice, AMissingProviderIsExplained) {
  Endpoint endpoint;
  Options options;
  options.provider = "imaginary";
  ASSERT_EQ(endpoint.open(options, {}), MOB_ERR_SETTING);
  const std::string provider = mob_last_error();
  EXPECT_NE(provider.find("MOBIUS_PROVIDER='imaginary'"), std::string::npos) << provider;
  EXPECT_NE(provider.find("'tcp;ofi_rxm'"), std::string::npos) << provider;

  options.provider = "verbs;ofi_rxm";
  if (endpoint.open(options, {}) != MOB_OK) {
    EXPECT_NE(std::string(mob_last_error()).find("RDMA adapter"), std::string::npos)
        << mob_last_error();
  }
  endpoint.close();

  options.provider = "tcp;ofi_rxm";
  for (const char* nowhere : {"nosuch0", "203.0.113.77", "203.0.113.0/24"}) {
    options.interface = nowhere;
    ASSERT_EQ(endpoint.open(options, {}), MOB_ERR_SETTING);
    const std::string text = mob_last_error();
    EXPECT_NE(text.find(nowhere), std::string::npos) << text;
    EXPECT_NE(text.find("MOBIUS_INTERFACE"), std::string::npos) << text;
  }
  // A loopback reaches no other host, so it must be allowed; so must providers for one host.
  for (const char* own : {"127.0.0.1", "lo"}) {
    options.interface = own;
    EXPECT_EQ(endpoint.open(options, {}), MOB_ERR_SETTING);
    EXPECT_NE(std::string(mob_last_error()).find("to other hosts"), std::string::npos)
        << mob_last_error();
  }
  options.provider = "shm";
  options.interface = "";
  EXPECT_EQ(endpoint.open(options, {}), MOB_ERR_SETTING);
  EXPECT_NE(std::string(mob_last_error()).find("shm"), std::string::npos) << mob_last_error();
  options.interface = "127.0.0.1";
  options.allow_loopback = true;
  options.provider = "";
  EXPECT_EQ(endpoint.open(options, {}), MOB_OK) << mob_last_error();
  EXPECT_EQ(endpoint.description().interface, "lo");
  // It is chosen, although other interfaces may exist, if all processes are on one machine.
  endpoint.close();
  options.interface = "";
  options.prefer_loopback = true;
  EXPECT_EQ(endpoint.open(options, {}), MOB_OK) << mob_last_error();
  EXPECT_EQ(endpoint.description().interface, "lo");
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiEndpoint, ::testing::Values("tcp;ofi_rxm", "net"),
                         [](const auto& provider) {
                           std::string name = provider.param;
                           for (char& letter : name) letter = letter == ';' ? '_' : letter;
                           return name;
                         });

}  // namespace
}  // namespace mobius::transport::ofi
