// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/segment_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "os/file/unix_socket.h"

namespace mobius::job {

// One SOCK_SEQPACKET message. Fixed size, host byte order: both ends are on one host.
struct ServerMessage {
  enum class Type : uint32_t { kNone, kHello, kAccepted, kSegment, kRefused, kChallenge };

  static constexpr uint32_t kMagic = 0x324d424f;  // "OBM2"
  static constexpr uint32_t kVersion = 2;

  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  Type type = Type::kNone;
  int32_t rank = -1;          // of the sender
  int32_t pid = 0;            // of the sender, as it knows itself
  int32_t seen = 0;           // kHello: the other side's process id, as the sender sees it
  int32_t pid_is_shared = 0;  // kSegment
  Nonce nonce{};              // the sender's, in kChallenge and kHello
  Proof proof{};              // of kHello and kAccepted; answers the receiver's nonce
  char reason[84]{};          // kRefused: one line, zero-terminated
};
static_assert(sizeof(ServerMessage) == 144);

namespace {

using base::fail;
using base::fail_errno;

// Connections that send nothing must neither keep others out nor use up our descriptors.
constexpr size_t kMostUnknown = 256;
// Connections that wait to be accepted, and that are accepted before other work is done.
constexpr int kBacklog = 256;
constexpr int kAcceptsPerTurn = 64;
// Attempts of a client whose connection was closed, as the oldest is when very many connect at
// once.
constexpr int kMostTries = 20;
constexpr timespec kPause{0, 5'000'000};
// Failures of accept() in a row, each followed by a pause, before the server gives up.
constexpr int kMostAcceptFailures = 400;

template <typename Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

socklen_t socket_address(const ServerAddress& address, sockaddr_un* result) {
  return os::abstract_address("mobius-host-" + to_hex(address), result);
}

bool send_message(int connection, const ServerMessage& message, int descriptor) {
  return os::send_message(connection, &message, sizeof message, descriptor) ==
         static_cast<ssize_t>(sizeof message);
}

bool is_ours(const ServerMessage& message, ssize_t bytes) {
  return bytes == static_cast<ssize_t>(sizeof message) && message.magic == ServerMessage::kMagic &&
         message.version == ServerMessage::kVersion;
}

void set_limit(int descriptor, unsigned limit_s) {
  const timeval limit{static_cast<time_t>(limit_s), 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

mob_status_t silent(mob_rank_t host, unsigned limit_s) {
  return fail(MOB_ERR_PEER,
              "mob_init: rank %d, which makes this host's shared memory, has not answered "
              "for %u seconds; is it stopped? MOBIUS_JOIN_SECONDS sets the limit",
              host, limit_s);
}

}  // namespace

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Connection::~Connection() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

mob_status_t SegmentServer::open() {
  mob_status_t status = make_random(address_);
  if (status == MOB_OK) status = nonces_.open();
  if (status != MOB_OK) return status;
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address;
  const socklen_t length = socket_address(address_, &address);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_, kBacklog) != 0) {
    return fail_errno(MOB_ERR_SYSTEM, errno, "cannot make the socket that local peers connect to");
  }
  return MOB_OK;
}

mob_status_t SegmentServer::start(const Secret& secret, mob_rank_t own, mob_rank_t size) {
  secret_ = secret;
  own_ = own;
  size_ = size;
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "no descriptor to end a thread with");
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return MOB_OK;
}

void SegmentServer::serve() {
  std::vector<pollfd> watched;
  while (true) {
    watched.assign({{stop_, POLLIN, 0}, {listener_, POLLIN, 0}});
    for (const Unknown& each : unknown_)
      watched.push_back({each.connection.descriptor(), POLLIN, 0});
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    receive_hellos();
    if (watched[1].revents != 0) accept_some();
  }
}

// A bounded number, so that processes that connect without pause do not keep others from being
// heard.
void SegmentServer::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Connection connection(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.descriptor() < 0) {
      const int error = errno;
      if (error == EAGAIN) return;
      if (error == EINTR || error == ECONNABORTED) continue;
      if ((error == EMFILE || error == ENFILE) && !unknown_.empty()) {
        make_room();
        continue;
      }
      accept_failed(error);
      return;
    }
    accept_failures_ = 0;
    ucred peer{};
    if (!os::is_same_user(connection.descriptor(), &peer)) {
      rejections_.report(peer.pid, "is another user's");
      continue;
    }
    if (unknown_.size() == kMostUnknown) make_room();
    ServerMessage challenge;
    challenge.type = ServerMessage::Type::kChallenge;
    challenge.rank = own_;
    challenge.nonce = nonces_.next();
    if (!send_message(connection.descriptor(), challenge, -1)) continue;
    unknown_.push_back({std::move(connection), challenge.nonce});
  }
}

// Clients wait for an answer. When the server can give none for seconds, it stops listening: they
// find nobody there and look for another process to share memory with.
void SegmentServer::accept_failed(int error) {
  nanosleep(&kPause, nullptr);
  if (++accept_failures_ < kMostAcceptFailures) return;
  base::log(
      base::LogLevel::kWarn,
      "accepting connections of local peers fails (%s); those that have not connected yet count "
      "as another host",
      std::strerror(error));
  shutdown(listener_, SHUT_RDWR);
  ::close(listener_);
  listener_ = -1;
}

// Receives what the connections have sent by now. If none has sent anything, closes the oldest.
void SegmentServer::make_room() {
  const size_t before = unknown_.size();
  receive_hellos();
  if (unknown_.size() == before) unknown_.erase(unknown_.begin());
}

// Connections that have sent nothing stay.
void SegmentServer::receive_hellos() {
  std::vector<Unknown> silent;
  for (Unknown& each : unknown_) {
    if (!receive_hello(each)) silent.push_back(std::move(each));
  }
  unknown_ = std::move(silent);
}

// Receives a connection's hello, and admits the process or drops the connection. False if nothing
// has arrived.
bool SegmentServer::receive_hello(Unknown& unknown) {
  ServerMessage hello;
  const int descriptor = unknown.connection.descriptor();
  const ssize_t got =
      retry([&] { return recv(descriptor, &hello, sizeof hello, MSG_TRUNC | MSG_DONTWAIT); });
  if (got < 0 && errno == EAGAIN) return false;
  ucred peer{};
  const bool known = os::is_same_user(descriptor, &peer) && is_ours(hello, got) &&
                     hello.type == ServerMessage::Type::kHello &&
                     is_proven(hello, secret_, unknown.nonce);
  if (known && admit(unknown, hello)) return true;
  if (got != 0) rejections_.report(peer.pid, "is not of this job");
  unknown.connection = Connection();
  return true;
}

bool SegmentServer::admit(Unknown& unknown, const ServerMessage& hello) {
  const bool known = std::ranges::any_of(
      clients_, [&](const SegmentClient& client) { return client.rank == hello.rank; });
  if (hello.rank < 0 || hello.rank >= size_ || hello.rank == own_ || known) return false;
  ServerMessage answer;
  answer.type = ServerMessage::Type::kAccepted;
  answer.rank = own_;
  answer.pid = getpid();
  seal(answer, secret_, hello.nonce);
  const int descriptor = unknown.connection.descriptor();
  if (!send_message(descriptor, answer, -1)) return false;
  ucred peer{};
  os::is_same_user(descriptor, &peer);
  clients_.push_back(
      {hello.rank, hello.seen == getpid(), hello.pid == peer.pid, std::move(unknown.connection)});
  return true;
}

std::vector<SegmentClient> SegmentServer::stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = write(stop_, &one, sizeof one);
    thread_.join();
  }
  std::vector<SegmentClient> clients = std::move(clients_);
  close();
  std::ranges::sort(clients, {}, &SegmentClient::rank);
  return clients;
}

void SegmentServer::close() {
  if (thread_.joinable()) stop();
  unknown_.clear();
  clients_.clear();
  if (listener_ >= 0) ::close(listener_);
  if (stop_ >= 0) ::close(stop_);
  listener_ = -1;
  stop_ = -1;
}

mob_status_t send_segment(const SegmentClient& client, const SegmentOffer& offer) {
  ServerMessage message;
  message.type = ServerMessage::Type::kSegment;
  message.pid = getpid();
  message.pid_is_shared = offer.pid_is_shared ? 1 : 0;
  if (send_message(client.connection.descriptor(), message, offer.segment)) return MOB_OK;
  return fail_errno(MOB_ERR_PEER, errno, "mob_init: rank %d of this host is gone", client.rank);
}

void send_refusal(const SegmentClient& client, const char* reason) {
  ServerMessage message;
  message.type = ServerMessage::Type::kRefused;
  std::strncpy(message.reason, reason, sizeof message.reason - 1);
  send_message(client.connection.descriptor(), message, -1);
}

namespace {

// Receives one message from the server; false when the server has closed the connection. A limit
// that passes is an error of its own.
bool receive_answer(int descriptor, ServerMessage* answer, ssize_t* got) {
  int unasked = -1;
  *got = os::receive_message(descriptor, answer, sizeof *answer, &unasked);
  if (unasked >= 0) close(unasked);
  return *got > 0;
}

// As join_segment_server(). `*again`: the server serves, but has closed this connection.
JoinOutcome try_to_join(const ServerAddress& address, const Secret& secret, mob_rank_t host,
                        mob_rank_t own, unsigned limit_s, Connection* connection, bool* again) {
  *again = false;
  Connection attempt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const int descriptor = attempt.descriptor();
  if (descriptor < 0) {
    fail_errno(MOB_ERR_SYSTEM, errno, "making a Unix socket failed");
    return JoinOutcome::kFailed;
  }
  set_limit(descriptor, limit_s);
  sockaddr_un name;
  const socklen_t length = socket_address(address, &name);
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  if (retry([&] { return connect(descriptor, generic, length); }) != 0) {
    if (errno != EAGAIN) return JoinOutcome::kNobodyThere;  // not there, or not for us to reach
    silent(host, limit_s);
    return JoinOutcome::kFailed;
  }
  ucred peer{};
  if (!os::is_same_user(descriptor, &peer)) return JoinOutcome::kNobodyThere;
  const auto fail_silent = [&] {
    silent(host, limit_s);
    return JoinOutcome::kFailed;
  };
  const auto fail_version = [&] {
    fail(MOB_ERR_SYSTEM,
         "mob_init: rank %d answers in another version of the protocol; do all processes use the "
         "same libmobius?",
         host);
    return JoinOutcome::kFailed;
  };
  ServerMessage answer;
  ssize_t got = 0;
  if (!receive_answer(descriptor, &answer, &got)) {
    // A process that has found its host's server closes its own.
    return got < 0 && errno == EAGAIN ? fail_silent() : JoinOutcome::kNobodyThere;
  }
  if (!is_ours(answer, got) || answer.type != ServerMessage::Type::kChallenge) {
    return fail_version();
  }
  ServerMessage hello;
  hello.type = ServerMessage::Type::kHello;
  hello.rank = own;
  hello.pid = getpid();
  hello.seen = peer.pid;
  if (make_random(hello.nonce) != MOB_OK) return JoinOutcome::kFailed;
  seal(hello, secret, answer.nonce);
  if (!send_message(descriptor, hello, -1) || !receive_answer(descriptor, &answer, &got)) {
    if (got < 0 && errno == EAGAIN) return fail_silent();
    *again = true;
    return JoinOutcome::kNobodyThere;
  }
  if (!is_ours(answer, got) || answer.type != ServerMessage::Type::kAccepted ||
      answer.rank != host) {
    return fail_version();
  }
  if (!is_proven(answer, secret, hello.nonce)) return JoinOutcome::kNobodyThere;
  *connection = std::move(attempt);
  return JoinOutcome::kJoined;
}

}  // namespace

JoinOutcome join_segment_server(const ServerAddress& address, const Secret& secret, mob_rank_t host,
                                mob_rank_t own, unsigned limit_s, Connection* connection) {
  for (int i = 1;; ++i) {
    bool again = false;
    const JoinOutcome outcome =
        try_to_join(address, secret, host, own, limit_s, connection, &again);
    if (!again || i == kMostTries) return outcome;
    nanosleep(&kPause, nullptr);
  }
}

mob_status_t receive_segment(const Connection& connection, mob_rank_t host, unsigned limit_s,
                             SegmentOffer* offer) {
  ServerMessage message;
  int segment = -1;
  const ssize_t got =
      os::receive_message(connection.descriptor(), &message, sizeof message, &segment);
  if (got < 0 && errno == EAGAIN) return silent(host, limit_s);
  if (is_ours(message, got) && message.type == ServerMessage::Type::kSegment && segment >= 0) {
    *offer = {segment, message.pid_is_shared != 0};
    return MOB_OK;
  }
  if (segment >= 0) close(segment);
  if (is_ours(message, got) && message.type == ServerMessage::Type::kRefused) {
    message.reason[sizeof message.reason - 1] = '\0';
    return fail(MOB_ERR_PEER, "mob_init failed at rank %d, the first of this host: %s", host,
                message.reason);
  }
  return fail(MOB_ERR_PEER, "mob_init: rank %d, which makes this host's shared memory, has died",
              host);
}

}  // namespace mobius::job
