// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/segment_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "os/unix_socket.h"

namespace mobius::job {

// One SOCK_SEQPACKET message. Fixed size, host byte order: both ends are on one host.
struct ServerMessage {
  enum class Type : uint32_t { kNone, kHello, kAccepted, kSegment, kRefused };

  static constexpr uint32_t kMagic = 0x324d424f;  // "OBM2"
  static constexpr uint32_t kVersion = 1;

  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  Type type = Type::kNone;
  int32_t rank = -1;          // of the sender
  Secret secret{};            // kHello
  int32_t pid = 0;            // of the sender, as it knows itself
  int32_t seen = 0;           // kHello: the other side, as the sender knows it
  int32_t pid_is_shared = 0;  // kSegment
  char reason[84]{};          // kRefused: one connection, zero-terminated
};
static_assert(sizeof(ServerMessage) == 128);

namespace {

using base::fail;
using base::fail_errno;

// Connections that send nothing must neither keep others out nor use up our descriptors.
constexpr size_t kMostUnknown = 64;

template <typename Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

socklen_t socket_address(const ServerAddress& address, sockaddr_un* result) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "mobius-host-";
  for (const unsigned char byte : address) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  *result = {};
  result->sun_family = AF_UNIX;
  std::memcpy(result->sun_path + 1, name.data(), name.size());  // leading 0: abstract
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
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

mob_status_t random_bytes(void* bytes, size_t count) {
  if (getrandom(bytes, count, 0) == static_cast<ssize_t>(count)) return MOB_OK;
  return fail_errno(MOB_ERR_SYSTEM, errno, "no random number for the job's key");
}

mob_status_t silent(mob_rank_t host, unsigned limit_s) {
  return fail(MOB_ERR_PEER,
              "mob_init: rank %d, which makes this host's shared memory, has not answered "
              "for %u seconds; is it stopped? MOBIUS_JOIN_SECONDS sets the limit",
              host, limit_s);
}

}  // namespace

mob_status_t make_secret(Secret* secret) { return random_bytes(secret->data(), secret->size()); }

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Connection::~Connection() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

mob_status_t SegmentServer::open() {
  if (const mob_status_t status = random_bytes(address_.data(), address_.size())) return status;
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address;
  const socklen_t length = socket_address(address_, &address);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_, SOMAXCONN) != 0) {
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
    for (const Connection& connection : unknown_)
      watched.push_back({connection.descriptor(), POLLIN, 0});
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    receive_hellos();
    if (watched[1].revents != 0) accept_all();
  }
}

void SegmentServer::accept_all() {
  while (true) {
    Connection connection(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.descriptor() < 0) {
      const bool full = errno == EMFILE || errno == ENFILE;
      if (!full || unknown_.empty()) return;
      make_room();
      continue;
    }
    ucred peer{};
    if (!os::is_same_user(connection.descriptor(), &peer)) {
      rejections_.report(peer.pid, "is another user's");
      continue;
    }
    if (unknown_.size() == kMostUnknown) make_room();
    unknown_.push_back(std::move(connection));
  }
}

// Receives what the connections have sent by now. If none has sent anything, closes the oldest.
void SegmentServer::make_room() {
  const size_t before = unknown_.size();
  receive_hellos();
  if (unknown_.size() == before) unknown_.erase(unknown_.begin());
}

// Connections that have sent nothing stay.
void SegmentServer::receive_hellos() {
  std::vector<Connection> silent;
  for (Connection& connection : unknown_) {
    if (!receive_hello(connection)) silent.push_back(std::move(connection));
  }
  unknown_ = std::move(silent);
}

// Receives a connection's hello, and admits the process or drops the connection. False if nothing
// has arrived.
bool SegmentServer::receive_hello(Connection& connection) {
  ServerMessage hello;
  const ssize_t got = retry([&] {
    return recv(connection.descriptor(), &hello, sizeof hello, MSG_TRUNC | MSG_DONTWAIT);
  });
  if (got < 0 && errno == EAGAIN) return false;
  ucred peer{};
  const bool known = os::is_same_user(connection.descriptor(), &peer) && is_ours(hello, got) &&
                     hello.type == ServerMessage::Type::kHello && hello.secret == secret_;
  if (known && admit(connection, hello)) return true;
  if (got != 0) rejections_.report(peer.pid, "is not of this job");
  connection = Connection();
  return true;
}

bool SegmentServer::admit(Connection& connection, const ServerMessage& hello) {
  const bool known = std::ranges::any_of(
      clients_, [&](const SegmentClient& client) { return client.rank == hello.rank; });
  if (hello.rank < 0 || hello.rank >= size_ || hello.rank == own_ || known) return false;
  ServerMessage answer;
  answer.type = ServerMessage::Type::kAccepted;
  answer.rank = own_;
  answer.pid = getpid();
  if (!send_message(connection.descriptor(), answer, -1)) return false;
  ucred peer{};
  os::is_same_user(connection.descriptor(), &peer);
  clients_.push_back(
      {hello.rank, hello.seen == getpid(), hello.pid == peer.pid, std::move(connection)});
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

JoinOutcome join_segment_server(const ServerAddress& address, const Secret& secret, mob_rank_t host,
                                mob_rank_t own, unsigned limit_s, Connection* connection) {
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
  ServerMessage hello;
  ucred peer{};
  if (!os::is_same_user(descriptor, &peer)) return JoinOutcome::kNobodyThere;
  hello.seen = peer.pid;
  hello.type = ServerMessage::Type::kHello;
  hello.rank = own;
  hello.secret = secret;
  hello.pid = getpid();
  if (!send_message(descriptor, hello, -1)) return JoinOutcome::kNobodyThere;
  ServerMessage answer;
  int received = -1;
  const ssize_t got = os::receive_message(descriptor, &answer, sizeof answer, &received);
  if (received >= 0) close(received);
  if (got < 0 && errno == EAGAIN) {
    silent(host, limit_s);
    return JoinOutcome::kFailed;
  }
  // A process that has found its host's server closes its own.
  if (got <= 0) return JoinOutcome::kNobodyThere;
  if (!is_ours(answer, got) || answer.type != ServerMessage::Type::kAccepted ||
      answer.rank != host) {
    fail(MOB_ERR_SYSTEM,
         "mob_init: rank %d answers in another version of the protocol; do all processes use the "
         "same libmobius?",
         host);
    return JoinOutcome::kFailed;
  }
  *connection = std::move(attempt);
  return JoinOutcome::kJoined;
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
