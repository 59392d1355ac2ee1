// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/reception.h"

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
struct ReceptionMessage {
  enum class Type : uint32_t { kNone, kHello, kLetIn, kSegment, kTurnedAway };

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
  char reason[84]{};          // kTurnedAway: one line, zero-terminated
};
static_assert(sizeof(ReceptionMessage) == 128);

namespace {

using base::fail;
using base::fail_errno;

// Who connects and says nothing must not keep others out, nor fill our table of files.
constexpr size_t kMostStrangers = 64;

template <typename Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

socklen_t socket_address(const ReceptionAddress& address, sockaddr_un* result) {
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

bool send_message(int line, const ReceptionMessage& message, int descriptor) {
  return os::send_message(line, &message, sizeof message, descriptor) ==
         static_cast<ssize_t>(sizeof message);
}

bool is_ours(const ReceptionMessage& message, ssize_t bytes) {
  return bytes == static_cast<ssize_t>(sizeof message) &&
         message.magic == ReceptionMessage::kMagic && message.version == ReceptionMessage::kVersion;
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
              "mob_init: rank %d, which should make this host's shared memory, has not answered "
              "for %u seconds; is it stopped? MOBIUS_JOIN_SECONDS sets the limit",
              host, limit_s);
}

}  // namespace

mob_status_t make_secret(Secret* secret) { return random_bytes(secret->data(), secret->size()); }

Line& Line::operator=(Line&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Line::~Line() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

mob_status_t Reception::open() {
  if (const mob_status_t status = random_bytes(address_.data(), address_.size())) return status;
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address;
  const socklen_t length = socket_address(address_, &address);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_, SOMAXCONN) != 0) {
    return fail_errno(MOB_ERR_SYSTEM, errno, "cannot make the socket that host-mates connect to");
  }
  return MOB_OK;
}

mob_status_t Reception::start(const Secret& secret, mob_rank_t own, mob_rank_t size) {
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

void Reception::serve() {
  std::vector<pollfd> watched;
  while (true) {
    watched.assign({{stop_, POLLIN, 0}, {listener_, POLLIN, 0}});
    for (const Line& stranger : strangers_) watched.push_back({stranger.descriptor(), POLLIN, 0});
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    hear_all();
    if (watched[1].revents != 0) accept_all();
  }
}

void Reception::accept_all() {
  while (true) {
    Line line(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (line.descriptor() < 0) {
      const bool full = errno == EMFILE || errno == ENFILE;
      if (!full || strangers_.empty()) return;
      make_room();
      continue;
    }
    ucred peer{};
    if (!os::is_same_user(line.descriptor(), &peer)) {
      turned_away_.report(peer.pid, "is another user's");
      continue;
    }
    if (strangers_.size() == kMostStrangers) make_room();
    strangers_.push_back(std::move(line));
  }
}

// Many may have come at once and have spoken since: only if nobody has, the one that has been
// silent for longest goes.
void Reception::make_room() {
  const size_t before = strangers_.size();
  hear_all();
  if (strangers_.size() == before) strangers_.erase(strangers_.begin());
}

// Who has said nothing stays.
void Reception::hear_all() {
  std::vector<Line> silent;
  for (Line& stranger : strangers_) {
    if (!hear(stranger)) silent.push_back(std::move(stranger));
  }
  strangers_ = std::move(silent);
}

// What a stranger says, who is let in or gone after that; false if it has said nothing.
bool Reception::hear(Line& stranger) {
  ReceptionMessage hello;
  const ssize_t got = retry(
      [&] { return recv(stranger.descriptor(), &hello, sizeof hello, MSG_TRUNC | MSG_DONTWAIT); });
  if (got < 0 && errno == EAGAIN) return false;
  ucred peer{};
  const bool known = os::is_same_user(stranger.descriptor(), &peer) && is_ours(hello, got) &&
                     hello.type == ReceptionMessage::Type::kHello && hello.secret == secret_;
  if (known && welcome(stranger, hello)) return true;
  if (got != 0) turned_away_.report(peer.pid, "is not of this job");
  stranger = Line();
  return true;
}

bool Reception::welcome(Line& stranger, const ReceptionMessage& hello) {
  const bool known =
      std::ranges::any_of(guests_, [&](const Guest& guest) { return guest.rank == hello.rank; });
  if (hello.rank < 0 || hello.rank >= size_ || hello.rank == own_ || known) return false;
  ReceptionMessage answer;
  answer.type = ReceptionMessage::Type::kLetIn;
  answer.rank = own_;
  answer.pid = getpid();
  if (!send_message(stranger.descriptor(), answer, -1)) return false;
  ucred peer{};
  os::is_same_user(stranger.descriptor(), &peer);
  guests_.push_back(
      {hello.rank, hello.seen == getpid(), hello.pid == peer.pid, std::move(stranger)});
  return true;
}

std::vector<Guest> Reception::stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = write(stop_, &one, sizeof one);
    thread_.join();
  }
  std::vector<Guest> guests = std::move(guests_);
  close();
  std::ranges::sort(guests, {}, &Guest::rank);
  return guests;
}

void Reception::close() {
  if (thread_.joinable()) stop();
  strangers_.clear();
  guests_.clear();
  if (listener_ >= 0) ::close(listener_);
  if (stop_ >= 0) ::close(stop_);
  listener_ = -1;
  stop_ = -1;
}

mob_status_t hand_over(const Guest& guest, const Handover& handover) {
  ReceptionMessage message;
  message.type = ReceptionMessage::Type::kSegment;
  message.pid = getpid();
  message.pid_is_shared = handover.pid_is_shared ? 1 : 0;
  if (send_message(guest.line.descriptor(), message, handover.segment)) return MOB_OK;
  return fail_errno(MOB_ERR_PEER, errno, "mob_init: host-mate %d is gone", guest.rank);
}

void turn_away(const Guest& guest, const char* reason) {
  ReceptionMessage message;
  message.type = ReceptionMessage::Type::kTurnedAway;
  std::strncpy(message.reason, reason, sizeof message.reason - 1);
  send_message(guest.line.descriptor(), message, -1);
}

Visit visit(const ReceptionAddress& address, const Secret& secret, mob_rank_t host, mob_rank_t own,
            unsigned limit_s, Line* line) {
  Line attempt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const int descriptor = attempt.descriptor();
  if (descriptor < 0) {
    fail_errno(MOB_ERR_SYSTEM, errno, "making a Unix socket failed");
    return Visit::kFailed;
  }
  set_limit(descriptor, limit_s);
  sockaddr_un name;
  const socklen_t length = socket_address(address, &name);
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  if (retry([&] { return connect(descriptor, generic, length); }) != 0) {
    if (errno != EAGAIN) return Visit::kNobodyThere;  // not there, or not for us to reach
    silent(host, limit_s);
    return Visit::kFailed;
  }
  ReceptionMessage hello;
  ucred peer{};
  if (!os::is_same_user(descriptor, &peer)) return Visit::kNobodyThere;
  hello.seen = peer.pid;
  hello.type = ReceptionMessage::Type::kHello;
  hello.rank = own;
  hello.secret = secret;
  hello.pid = getpid();
  if (!send_message(descriptor, hello, -1)) return Visit::kNobodyThere;
  ReceptionMessage answer;
  int received = -1;
  const ssize_t got = os::receive_message(descriptor, &answer, sizeof answer, &received);
  if (received >= 0) close(received);
  if (got < 0 && errno == EAGAIN) {
    silent(host, limit_s);
    return Visit::kFailed;
  }
  // It closes its socket when it has found a reception that is not its own.
  if (got <= 0) return Visit::kNobodyThere;
  if (!is_ours(answer, got) || answer.type != ReceptionMessage::Type::kLetIn ||
      answer.rank != host) {
    fail(MOB_ERR_SYSTEM,
         "mob_init: rank %d answers in another version of the protocol; do all processes use the "
         "same libmobius?",
         host);
    return Visit::kFailed;
  }
  *line = std::move(attempt);
  return Visit::kLetIn;
}

mob_status_t take_over(const Line& line, mob_rank_t host, unsigned limit_s, Handover* handover) {
  ReceptionMessage message;
  int segment = -1;
  const ssize_t got = os::receive_message(line.descriptor(), &message, sizeof message, &segment);
  if (got < 0 && errno == EAGAIN) return silent(host, limit_s);
  if (is_ours(message, got) && message.type == ReceptionMessage::Type::kSegment && segment >= 0) {
    *handover = {segment, message.pid_is_shared != 0};
    return MOB_OK;
  }
  if (segment >= 0) close(segment);
  if (is_ours(message, got) && message.type == ReceptionMessage::Type::kTurnedAway) {
    message.reason[sizeof message.reason - 1] = '\0';
    return fail(MOB_ERR_PEER, "mob_init failed at rank %d, the first of this host: %s", host,
                message.reason);
  }
  return fail(MOB_ERR_PEER,
              "mob_init: rank %d, which should make this host's shared memory, has died", host);
}

}  // namespace mobius::job
