// SPDX-License-Identifier: BSD-3-Clause

// Sealed messages: the frames themselves, and two endpoints with somebody on the path between them
// who changes, repeats, swaps or removes what they send.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ofi_pair.h"
#include "transport/ofi/channel.h"
#include "transport/ofi/wire.h"

namespace mobius::transport::ofi {
namespace {

using base::Security;
using mobius_test::End;
using mobius_test::loopback;
using mobius_test::missing;
using mobius_test::Pair;
using mobius_test::pattern;
using mobius_test::port_of;

using Bytes = std::vector<unsigned char>;

constexpr unsigned char kJob[16] = {1, 2, 3, 4, 5, 6, 7, 8};

std::string missing_library() {
  return secure::load() == MOB_OK ? "" : std::string("SKIP: ") + mob_last_error();
}

// Frames of two endpoints without a network.
class SealedFrames : public ::testing::Test {
 protected:
  static constexpr uint64_t kLeft = 11, kRight = 22;

  void SetUp() override {
    if (const std::string reason = missing_library(); !reason.empty()) GTEST_SKIP() << reason;
    ASSERT_EQ(left_keys.open(Security::kMessages, kJob), MOB_OK);
    ASSERT_EQ(right_keys.open(Security::kMessages, kJob), MOB_OK);
    ASSERT_EQ(left_keys.make_channel(right_keys.own(), kLeft, kRight, "right", &left), MOB_OK);
    ASSERT_EQ(right_keys.make_channel(left_keys.own(), kRight, kLeft, "left", &right), MOB_OK);
  }
  Senders receiver(Channel& channel) {
    return Senders(right_keys.code_key(), kRight, true, [&](uint64_t name) {
      return name == kLeft ? Senders::Known{7, &channel.opener} : Senders::Known{};
    });
  }
  static Bytes seal(Channel& channel, uint64_t sequence, const Bytes& text,
                    uint64_t sender = kLeft) {
    Bytes frame(sizeof(SealedHeader) + text.size());
    const size_t half = text.size() / 2;
    const Piece pieces[] = {{text.data(), half}, {text.data() + half, text.size() - half}};
    EXPECT_TRUE(seal_message(channel.sealer, sender, sequence, pieces, text.size(), frame.data()));
    return frame;
  }
  static Verdict open(Senders& senders, Bytes frame, const Bytes& text = {}) {
    Opened opened;
    const Verdict verdict = senders.open_message(frame, &opened);
    if (verdict == Verdict::kGood || verdict == Verdict::kEarly) {
      EXPECT_EQ(Bytes(opened.message.begin(), opened.message.end()), text);
      EXPECT_EQ(opened.peer, 7u);
    }
    return verdict;
  }

  Keys left_keys, right_keys;
  std::unique_ptr<Channel> left, right;
};

TEST_F(SealedFrames, OpenOnceAndInOrderWhateverTheirOrder) {
  Senders senders = receiver(*right);
  const Bytes text = pattern(100, 1);
  const Bytes first = seal(*left, 1, text), second = seal(*left, 2, text),
              third = seal(*left, 3, text);
  EXPECT_EQ(open(senders, first, text), Verdict::kGood);
  EXPECT_EQ(open(senders, first), Verdict::kReplayed);
  EXPECT_EQ(open(senders, third, text), Verdict::kEarly);
  EXPECT_EQ(open(senders, second, text), Verdict::kGood);
  EXPECT_EQ(open(senders, second), Verdict::kReplayed);
}

TEST_F(SealedFrames, NoChangedBitAndNoOtherLengthOpens) {
  Senders senders = receiver(*right);
  const Bytes text = pattern(37, 2);
  const Bytes good = seal(*left, 1, text);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    // Another sender is nobody's name, and sequence number 0 a greeting.
    const bool is_sender = bit / 64 == offsetof(SealedHeader, sender) / 8;
    const bool is_greeting = bit == 8 * offsetof(SealedHeader, sequence);
    EXPECT_EQ(open(senders, bad), is_sender || is_greeting ? Verdict::kStranger : Verdict::kForged)
        << "bit " << bit;
  }
  for (size_t bytes = 0; bytes < good.size() + 20; ++bytes) {
    Bytes bad = good;
    bad.resize(bytes, 7);
    if (bytes == good.size()) continue;
    EXPECT_EQ(open(senders, bad),
              bytes < sizeof(SealedHeader) ? Verdict::kStranger : Verdict::kForged)
        << bytes;
  }
  EXPECT_EQ(open(senders, good, text), Verdict::kGood);
}

TEST_F(SealedFrames, WithTheWrongKeysAreForgedOrStrange) {
  const Bytes text = pattern(64, 3);
  Senders senders = receiver(*right);
  // A message back to its own sender: each direction has its own key.
  Senders at_left(left_keys.code_key(), kLeft, true,
                  [&](uint64_t) { return Senders::Known{7, &left->opener}; });
  EXPECT_EQ(open(at_left, seal(*left, 1, text)), Verdict::kForged);
  // A third process of the job, in the name of the left one: it knows the job's secret, both names
  // and both public keys.
  Keys third;
  ASSERT_EQ(third.open(Security::kMessages, kJob), MOB_OK);
  std::unique_ptr<Channel> posing;
  ASSERT_EQ(third.make_channel(right_keys.own(), kLeft, kRight, "right", &posing), MOB_OK);
  EXPECT_EQ(open(senders, seal(*posing, 1, text)), Verdict::kForged);
  // The left process' key pair, but the secret of another job.
  Keys other_job;
  const unsigned char job[16] = {9};
  ASSERT_EQ(other_job.open(Security::kMessages, job), MOB_OK);
  std::unique_ptr<Channel> stranger;
  ASSERT_EQ(other_job.make_channel(right_keys.own(), kLeft, kRight, "right", &stranger), MOB_OK);
  EXPECT_EQ(open(senders, seal(*stranger, 1, text)), Verdict::kForged);
  // Messages without encryption are not taken either.
  Bytes plain(sizeof(MessageHeader) + 64);
  const MessageHeader header = make_header(right_keys.code_key(), kLeft, kRight, 1, 64);
  std::memcpy(plain.data(), &header, sizeof header);
  EXPECT_EQ(open(senders, plain), Verdict::kForged);
  EXPECT_EQ(open(senders, seal(*left, 1, text, kLeft + 1)), Verdict::kStranger);
}

TEST_F(SealedFrames, GreetingsOfAThirdProcessAreNotProven) {
  Greeting greeting{5, Greeting::kAnswers, {}};
  ASSERT_EQ(left->prove(left->greeting_to, &greeting), MOB_OK);
  EXPECT_TRUE(right->is_proven(greeting));
  EXPECT_FALSE(left->is_proven(greeting));
  for (size_t bit = 0; bit < 8 * sizeof greeting; ++bit) {
    Greeting bad = greeting;
    reinterpret_cast<unsigned char*>(&bad)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_FALSE(right->is_proven(bad)) << "bit " << bit;
  }
}

TEST_F(SealedFrames, BothTakeTheCipherThatBothAreFastAt) {
  // The left end has the cipher of this processor, the right one each of them.
  for (const secure::Cipher theirs :
       {secure::Cipher::kAes256Gcm, secure::Cipher::kChaCha20Poly1305}) {
    Protection peer = right_keys.own();
    peer.cipher = static_cast<uint8_t>(theirs);
    std::unique_ptr<Channel> channel;
    ASSERT_EQ(left_keys.make_channel(peer, kLeft, kRight, "right", &channel), MOB_OK);
    EXPECT_EQ(channel->cipher, theirs == secure::Cipher::kAes256Gcm
                                   ? secure::preferred_cipher()
                                   : secure::Cipher::kChaCha20Poly1305);
  }
}

TEST_F(SealedFrames, OtherSettingsAndKeysThatAreNoneAreRefused) {
  Protection theirs = right_keys.own();
  theirs.security = static_cast<uint8_t>(Security::kOff);
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(left_keys.make_channel(theirs, kLeft, kRight, "hostb", &channel), MOB_ERR_SETTING);
  EXPECT_EQ(std::string(mob_last_error())
                .find("MOBIUS_SECURITY is messages in this process and off "
                      "in hostb"),
            0u)
      << mob_last_error();
  theirs = right_keys.own();
  theirs.public_key = {};
  EXPECT_EQ(left_keys.make_channel(theirs, kLeft, kRight, "hostb", &channel), MOB_ERR_ARGUMENT);
}

// Somebody on the path: takes the connection of the left endpoint, makes one of its own to the
// right one, and passes on what comes, possibly changed.
class Path {
 public:
  using Change = std::function<void(Bytes&)>;  // of bytes on their way to the right

  explicit Path(uint16_t right) : right_(right) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in own = address(0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    socklen_t bytes = sizeof own;
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &bytes), 0);
    port_ = own.sin_port;
  }
  ~Path() {
    for (const Way& way : ways_) {
      close(way.from);
      close(way.to);
    }
    close(listener_);
  }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  uint16_t port() const { return port_; }  // in network byte order
  size_t connections() const { return ways_.size(); }
  Change change;

  void pump() {
    const int left = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (left >= 0) {
      const int right = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in there = address(right_);
      EXPECT_EQ(connect(right, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
      ways_.push_back({left, right, false});
    }
    for (Way& way : ways_) {
      pass(way, way.from, way.to, true);
      pass(way, way.to, way.from, false);
    }
  }

 private:
  struct Way {
    int from, to;
    bool ended;
  };

  static sockaddr_in address(uint16_t port) {
    sockaddr_in made = {};
    made.sin_family = AF_INET;
    made.sin_port = port;
    made.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return made;
  }

  void pass(Way& way, int from, int to, bool is_right) {
    Bytes bytes(size_t{1} << 17);
    const ssize_t count = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 && !way.ended) {
      way.ended = true;
      shutdown(to, SHUT_RDWR);
    }
    if (count <= 0) return;
    bytes.resize(static_cast<size_t>(count));
    if (is_right && change) change(bytes);
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t sent = send(to, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;
      if (sent > 0) done += static_cast<size_t>(sent);
    }
  }

  uint16_t right_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::vector<Way> ways_;
};

// The place of the first frame that is no greeting in bytes of the stream, found by its sender's
// name.
constexpr size_t kNowhere = SIZE_MAX;
size_t find_frame(const Bytes& bytes, uint64_t sender) {
  unsigned char name[sizeof sender];
  std::memcpy(name, &sender, sizeof name);
  auto from = bytes.begin();
  while (true) {
    const auto found = std::search(from, bytes.end(), std::begin(name), std::end(name));
    const auto at = static_cast<size_t>(found - bytes.begin());
    if (at + 24 > bytes.size()) return kNowhere;
    uint64_t sequence = 0;
    std::memcpy(&sequence, bytes.data() + at + 8, sizeof sequence);
    if (at >= 8 && sequence != 0) return at - 8;
    from = found + 1;
  }
}

// A pair whose left end reaches the right one through a Path.
class Tampering : public ::testing::TestWithParam<std::tuple<const char*, Security>> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_library(); !reason.empty()) GTEST_SKIP() << reason;
    provider = std::get<0>(GetParam());
    if (const std::string reason = missing(provider); !reason.empty()) GTEST_SKIP() << reason;
    Options options = loopback(provider);
    options.security = std::get<1>(GetParam());
    ASSERT_EQ(left.open(options), MOB_OK) << mob_last_error();
    ASSERT_EQ(right.open(options), MOB_OK) << mob_last_error();
    path = std::make_unique<Path>(htons(port_of(right.endpoint)));
    Bytes there = right.endpoint.address();
    // The address of libfabric has port and IP address, one after the other.
    unsigned char wanted[6];
    const uint16_t port = htons(port_of(right.endpoint));
    const uint32_t ip = htonl(INADDR_LOOPBACK);
    std::memcpy(wanted, &port, 2);
    std::memcpy(wanted + 2, &ip, 4);
    const auto place =
        std::search(there.begin(), there.end(), std::begin(wanted), std::end(wanted));
    ASSERT_NE(place, there.end());
    const uint16_t other = path->port();
    std::memcpy(&*place, &other, sizeof other);
    ASSERT_EQ(left.endpoint.add_peer(there, &left.peer), MOB_OK) << mob_last_error();
    right.peer = right.add(left);
    std::memcpy(&left_name, left.endpoint.address().data() + 8, sizeof left_name);
  }

  void poll() {
    left.endpoint.poll();
    path->pump();
    right.endpoint.poll();
  }
  void send(const Bytes& text) {
    const Piece piece{text.data(), text.size()};
    while (left.endpoint.send(left.peer, {&piece, 1}) == Posted::kAgain) poll();
  }
  void poll_until(const std::function<bool()>& done) {
    while (!done()) poll();
  }

  const char* provider = nullptr;
  End left, right;
  std::unique_ptr<Path> path;
  uint64_t left_name = 0;
};

TEST_P(Tampering, NothingOfAMessageIsSeenOnThePath) {
  Bytes seen;
  path->change = [&](Bytes& bytes) { seen.insert(seen.end(), bytes.begin(), bytes.end()); };
  const std::string secret = "a text that nobody on the path may read, whatever its size is";
  std::vector<Bytes> sent;
  for (const size_t copies : {1, 20, 400}) {
    Bytes text;
    for (size_t i = 0; i < copies; ++i) text.insert(text.end(), secret.begin(), secret.end());
    sent.push_back(text);
    send(text);
  }
  poll_until([&] { return right.received.size() == sent.size() || !right.failed.empty(); });
  EXPECT_EQ(right.received, sent);
  EXPECT_EQ(right.last_sender, right.peer);
  EXPECT_EQ(path->connections(), 1u);
  EXPECT_NE(find_frame(seen, left_name), kNowhere);
  EXPECT_EQ(std::search(seen.begin(), seen.end(), secret.begin(), secret.begin() + 8), seen.end());
}

TEST_P(Tampering, AChangedByteOfAnyPartEndsTheConnectionAndNamesThePeer) {
  const Bytes text = pattern(200, 4);
  send(text);
  poll_until([&] { return right.received.size() == 1; });
  // Of header, tag, first and last byte of the message.
  std::mt19937_64 random(std::random_device{}());
  const size_t places[] = {offsetof(SealedHeader, number), offsetof(SealedHeader, sequence),
                           offsetof(SealedHeader, tag) + random() % 16, sizeof(SealedHeader),
                           sizeof(SealedHeader) + 199};
  const size_t place = places[random() % std::size(places)];
  SCOPED_TRACE("byte " + std::to_string(place) + " of the frame");
  bool is_changed = false;
  path->change = [&](Bytes& bytes) {
    const size_t frame = find_frame(bytes, left_name);
    if (is_changed || frame == kNowhere || frame + place >= bytes.size()) return;
    bytes[frame + place] ^= 0x10;
    is_changed = true;
  };
  send(text);
  poll_until([&] { return !right.failed.empty() || right.received.size() > 1; });
  EXPECT_TRUE(is_changed);
  EXPECT_EQ(right.received.size(), 1u);
  ASSERT_EQ(right.failed.size(), 1u);
  EXPECT_EQ(right.failed[0].first, right.peer);
  EXPECT_NE(right.failed[0].second.find("failed authentication"), std::string::npos)
      << right.failed[0].second;
  EXPECT_NE(right.failed[0].second.find("127.0.0.1:" + std::to_string(port_of(left.endpoint))),
            std::string::npos)
      << right.failed[0].second;
  // What it sends from now on is not taken.
  const Piece piece{text.data(), text.size()};
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(left.endpoint.send(left.peer, {&piece, 1}));
    poll();
  }
}

// libfabric's own header stays, and the frame behind it is replaced by an earlier one, of the same
// length.
TEST_P(Tampering, ARepeatedMessageIsDroppedAndTheMissingOneNoticed) {
  const Bytes texts[] = {pattern(300, 5), pattern(300, 6), pattern(300, 7)};
  Bytes recorded;
  int frames = 0;
  path->change = [&](Bytes& bytes) {
    const size_t frame = find_frame(bytes, left_name);
    const size_t length = sizeof(SealedHeader) + 300;
    if (frame == kNowhere || frame + length > bytes.size()) return;
    const auto start = bytes.begin() + static_cast<ptrdiff_t>(frame);
    if (++frames == 1) recorded.assign(start, start + static_cast<ptrdiff_t>(length));
    if (frames == 2) std::ranges::copy(recorded, start);
  };
  send(texts[0]);
  poll_until([&] { return right.received.size() == 1; });
  send(texts[1]);
  poll_until([&] { return frames == 2; });
  for (int i = 0; i < 20; ++i) poll();
  EXPECT_EQ(right.received.size(), 1u);
  EXPECT_TRUE(right.failed.empty());
  send(texts[2]);
  poll_until([&] { return !right.failed.empty() || right.received.size() > 1; });
  EXPECT_EQ(right.received.size(), 1u);
  ASSERT_EQ(right.failed.size(), 1u);
  EXPECT_NE(right.failed[0].second.find("messages from it were lost"), std::string::npos)
      << right.failed[0].second;
}

TEST_P(Tampering, SwappedMessagesArriveInTheirOrder) {
  const Bytes texts[] = {pattern(300, 5), pattern(300, 6), pattern(300, 7)};
  const size_t length = sizeof(SealedHeader) + 300;
  send(texts[0]);
  poll_until([&] { return right.received.size() == 1; });
  Bytes held;
  bool is_swapped = false;
  path->change = [&](Bytes& bytes) {
    held.insert(held.end(), bytes.begin(), bytes.end());
    bytes.clear();
    if (is_swapped) {
      bytes.swap(held);
      return;
    }
    const size_t first = find_frame(held, left_name);
    if (first == kNowhere || first + length > held.size()) return;
    const auto rest = held.begin() + static_cast<ptrdiff_t>(first + length);
    const size_t next = find_frame(Bytes(rest, held.end()), left_name);
    if (next == kNowhere || first + 2 * length + next > held.size()) return;
    std::swap_ranges(held.begin() + static_cast<ptrdiff_t>(first), rest,
                     rest + static_cast<ptrdiff_t>(next));
    is_swapped = true;
    bytes.swap(held);
  };
  send(texts[1]);
  send(texts[2]);
  poll_until([&] { return right.received.size() == 3 || !right.failed.empty(); });
  EXPECT_TRUE(is_swapped);
  EXPECT_EQ(right.received, std::vector<Bytes>(std::begin(texts), std::end(texts)));
}

// libfabric waits for the rest of a message that is cut short, or closes the connection.
TEST_P(Tampering, ATruncatedStreamDeliversNothing) {
  const Bytes text = pattern(300, 5);
  send(text);
  poll_until([&] { return right.received.size() == 1; });
  bool is_cut = false;
  path->change = [&](Bytes& bytes) {
    const size_t frame = find_frame(bytes, left_name);
    if (frame == kNowhere || is_cut) return;
    bytes.resize(frame + 100);
    is_cut = true;
  };
  send(text);
  poll_until([&] { return is_cut; });
  for (int i = 0; i < 100; ++i) poll();
  EXPECT_EQ(right.received.size(), 1u);
  send(text);  // its bytes take the place of the missing ones
  poll_until([&] { return !right.failed.empty() || right.received.size() > 1; });
  EXPECT_EQ(right.received.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Providers, Tampering,
                         ::testing::Combine(::testing::Values("tcp;ofi_rxm", "net"),
                                            ::testing::Values(Security::kMessages,
                                                              Security::kFull)),
                         [](const auto& parameters) {
                           std::string name = std::get<0>(parameters.param);
                           for (char& letter : name) letter = letter == ';' ? '_' : letter;
                           return name + "_" + base::name_of(std::get<1>(parameters.param));
                         });

TEST(Full, KeepsRemoteMemoryAccessOff) {
  if (const std::string reason = missing_library(); !reason.empty()) GTEST_SKIP() << reason;
  if (const std::string reason = missing("net"); !reason.empty()) GTEST_SKIP() << reason;
  Options options = loopback("net");
  options.security = Security::kFull;
  Pair pair(options);
  uint64_t word = 0;
  Registration registration;
  EXPECT_EQ(pair.left.endpoint.register_memory(&word, sizeof word, &registration), MOB_ERR_STATE);
  EXPECT_EQ(pair.left.endpoint.write(pair.left.peer, &word, sizeof word, 0, 1, 1), Posted::kFailed);
  EXPECT_EQ(pair.left.endpoint.read(pair.left.peer, &word, sizeof word, 0, 1, 1), Posted::kFailed);
  EXPECT_NE(std::string(mob_last_error()).find("MOBIUS_SECURITY=full"), std::string::npos);
}

TEST(Full, AndOffAreNotPeers) {
  if (const std::string reason = missing_library(); !reason.empty()) GTEST_SKIP() << reason;
  if (const std::string reason = missing("net"); !reason.empty()) GTEST_SKIP() << reason;
  Options options = loopback("net");
  End off, full;
  ASSERT_EQ(off.open(options), MOB_OK);
  options.security = Security::kFull;
  ASSERT_EQ(full.open(options), MOB_OK);
  PeerId peer = 0;
  EXPECT_EQ(off.endpoint.add_peer(full.endpoint.address(), &peer), MOB_ERR_SETTING);
  EXPECT_NE(std::string(mob_last_error()).find("off in this process and full in peer 127.0.0.1:"),
            std::string::npos)
      << mob_last_error();
  EXPECT_EQ(full.endpoint.check_security("rank 0", off.endpoint.address()), MOB_ERR_SETTING);
  EXPECT_NE(
      std::string(mob_last_error()).find("full in this process and off in rank 0, 127.0.0.1:"),
      std::string::npos)
      << mob_last_error();
}

}  // namespace
}  // namespace mobius::transport::ofi
