// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/rendezvous.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"
#include "job/bootstrap/shm_directory.h"
#include "job/control.h"
#include "job/launch/say.h"
#include "os/unix_socket.h"

namespace mobius::launch {
namespace {

using job::Message;
using job::MessageType;

constexpr int kMostReports = 8;

mob_status_t make_key(std::string* key) {
  unsigned char bits[job::kKeyDigits / 2];
  if (getrandom(bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "no random number for the job's key");
  }
  for (const unsigned char byte : bits) *key += fmt::format("{:02x}", byte);
  return MOB_OK;
}

// The socket's buffer is empty at this point of the protocol, so it never waits.
bool send_message(int connection, const Message& message, int descriptor) {
  return os::send_message(connection, &message, sizeof message, descriptor) ==
         static_cast<ssize_t>(sizeof message);
}

}  // namespace

Rendezvous::~Rendezvous() {
  for (Connection& connection : connections_) close_connection(connection);
  if (listener_ >= 0) close(listener_);
  segments_.push_back(board_);
  for (const Segment& segment : segments_) {
    if (segment.block != nullptr) job::control_unmap(segment.block);
    if (segment.descriptor >= 0) close(segment.descriptor);
  }
}

mob_status_t Rendezvous::make_segments(mob_rank_t size, int32_t hosts) {
  layout_ = job::Layout::blocks(size, hosts);
  for (int32_t host = 0; host < hosts; ++host) {
    Segment& segment = segments_.emplace_back();
    mob_status_t status = hosts == 1 ? job::control_create(size, &segment.descriptor)
                                     : job::control_create(layout_, host, &segment.descriptor);
    if (status == MOB_OK) status = job::control_map(segment.descriptor, &segment.block);
    if (status != MOB_OK) return status;
  }
  if (hosts == 1) return MOB_OK;
  const mob_status_t status = job::ShmDirectory::create(size, &board_.descriptor);
  return status != MOB_OK ? status : job::control_map(board_.descriptor, &board_.block);
}

mob_status_t Rendezvous::open(mob_rank_t size, int32_t hosts) {
  members_.resize(static_cast<size_t>(size));
  if (const mob_status_t status = make_key(&key_)) return status;
  if (const mob_status_t status = make_segments(size, hosts)) return status;
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address;
  const socklen_t length = job::socket_address(key_, &address);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_, SOMAXCONN) != 0) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "cannot make the socket that ranks join at");
  }
  poller_.add(listener_, EPOLLIN, {Source::kListener});
  return MOB_OK;
}

void Rendezvous::on_listener() {
  while (true) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && drop_silent()) continue;
    if (descriptor < 0) return;
    ucred peer{};
    if (!os::is_same_user(descriptor, &peer)) {
      report(peer.pid, "is another user's");
      close(descriptor);
      continue;
    }
    auto slot = std::find_if(connections_.begin(), connections_.end(),
                             [](const Connection& c) { return c.descriptor < 0; });
    if (slot == connections_.end()) slot = connections_.insert(slot, Connection{});
    *slot = {descriptor, peer.pid, -1, ++accepted_};
    poller_.add(descriptor, EPOLLIN,
                {Source::kConnection, static_cast<uint32_t>(slot - connections_.begin())});
  }
}

// A stranger can connect as often as it likes: it shall not fill the log.
void Rendezvous::report(pid_t pid, const char* what) {
  if (reported_ == kMostReports) return;
  ++reported_;
  say("warning: turned away process {}, which connected to this job's socket and {}{}", pid, what,
      reported_ == kMostReports ? "; more of this is not reported" : "");
}

// Those who never say who they are must not keep ranks out.
bool Rendezvous::drop_silent() {
  Connection* oldest = nullptr;
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    if (connections_[slot].rank < 0) on_connection(slot);
    Connection& connection = connections_[slot];
    if (connection.descriptor < 0 || connection.rank >= 0) continue;
    if (oldest == nullptr || connection.number < oldest->number) oldest = &connection;
  }
  if (oldest == nullptr) return false;
  close_connection(*oldest);
  return true;
}

void Rendezvous::on_connection(uint32_t slot) {
  Connection& connection = connections_[slot];
  while (connection.descriptor >= 0) {
    if (!receive(connection)) return;
  }
}

void Rendezvous::catch_up(const std::vector<mob_rank_t>& ended) {
  on_listener();
  for (uint32_t slot = 0; slot < connections_.size(); ++slot) {
    if (connections_[slot].rank < 0) on_connection(slot);
  }
  for (const mob_rank_t rank : ended) {
    const Member& member = members_[static_cast<size_t>(rank)];
    if (member.state == State::kJoined) on_connection(member.slot);
  }
}

// False when there is nothing more to receive now.
bool Rendezvous::receive(Connection& connection) {
  // A longer message than ours is recognised by MSG_TRUNC; descriptors that a stranger attaches
  // are not accepted because no room is given for them.
  Message message{};
  const ssize_t got =
      recv(connection.descriptor, &message, sizeof message, MSG_TRUNC | MSG_DONTWAIT);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  const bool whole =
      got == static_cast<ssize_t>(sizeof message) && message.magic == job::kProtocolMagic;
  const mob_rank_t rank = connection.rank;
  if (rank < 0) {
    if (whole && message.type == MessageType::kAbort) on_abort(message);
    if (got > 0 && !whole) report(connection.pid, "is not of this job");
    const bool joined =
        whole && message.type == MessageType::kHello && welcome(connection, message);
    if (!joined) close_connection(connection);
    return joined;
  }
  if (got > 0 && !(whole && message.type == MessageType::kGoodbye)) return true;  // not for us
  const State state = got > 0 ? State::kLeft : State::kLost;
  members_[static_cast<size_t>(rank)].state = state;
  if (state == State::kLost) ++lost_;
  changes_.push_back({rank, state});
  close_connection(connection);
  return false;
}

void Rendezvous::on_abort(const Message& message) {
  if (message.version != job::kProtocolVersion || message.rank < 0 ||
      message.rank >= static_cast<mob_rank_t>(members_.size())) {
    return;
  }
  members_[static_cast<size_t>(message.rank)].aborted = true;
}

void Rendezvous::declare_dead(mob_rank_t rank) {
  if (segments_.empty()) return;
  const job::Place place = layout_.place_of(rank);
  job::declare_dead(segments_[static_cast<size_t>(place.host)].block->slot(place.index));
  if (board_.block != nullptr) job::declare_dead(board_.block->slot(rank));
}

bool Rendezvous::welcome(Connection& connection, const Message& hello) {
  const auto size = static_cast<mob_rank_t>(members_.size());
  if (hello.version != job::kProtocolVersion) {
    return refuse(connection, fmt::format("the launcher speaks protocol {}, this libmobius {}; use "
                                          "the mobius command that came with it",
                                          job::kProtocolVersion, hello.version));
  }
  if (hello.rank < 0 || hello.rank >= size) {
    return refuse(connection,
                  fmt::format("rank {} is not in 0 ... {}; leave {} as mobius run sets it",
                              hello.rank, size - 1, job::kRankVariable));
  }
  Member& member = members_[static_cast<size_t>(hello.rank)];
  if (member.state == State::kJoined) {
    return refuse(connection,
                  fmt::format("rank {} is already taken by process {}; a program that is "
                              "a job of its own needs {} unset",
                              hello.rank, member.pid, job::kJobVariable));
  }
  if (member.state != State::kAbsent) {
    return refuse(connection,
                  fmt::format("rank {} has left the job (process {}); a rank joins once "
                              "per mobius run",
                              hello.rank, member.pid));
  }
  Message answer;
  answer.type = MessageType::kWelcome;
  answer.rank = hello.rank;
  answer.size = size;
  answer.pid = connection.pid;
  answer.hosts = layout_.hosts();
  const job::Place place = layout_.place_of(hello.rank);
  const Segment& segment = segments_[static_cast<size_t>(place.host)];
  if (!send_message(connection.descriptor, answer, segment.descriptor)) return false;
  if (board_.block != nullptr) {
    answer.type = MessageType::kDirectory;
    if (!send_message(connection.descriptor, answer, board_.descriptor)) return false;
  }
  connection.rank = hello.rank;
  member.state = State::kJoined;
  member.pid = connection.pid;
  member.slot = static_cast<uint32_t>(&connection - connections_.data());
  ++joined_;
  changes_.push_back({hello.rank, State::kJoined});
  return true;
}

bool Rendezvous::refuse(const Connection& connection, const std::string& reason) {
  Message answer;
  answer.type = MessageType::kRefused;
  reason.copy(answer.reason, sizeof answer.reason - 1);
  send_message(connection.descriptor, answer, -1);
  return false;
}

void Rendezvous::close_connection(Connection& connection) {
  if (connection.descriptor >= 0) close(connection.descriptor);
  connection = {};
}

}  // namespace mobius::launch
