// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "job/bootstrap/shm_directory.h"
#include "job/control.h"
#include "job/launch/output/say.h"
#include "os/file/unix_socket.h"
#include "os/process/process.h"

namespace mobius::launch {
namespace {

using job::Message;
using job::MessageType;

// Outsiders that are logged.
constexpr int kMostReports = 8;
// Connections that wait to be accepted. Catching up accepts as many at most.
constexpr int kBacklog = 256;
constexpr int kAcceptsPerTurn = 32;
constexpr int kMessagesPerTurn = 16;
// Connections of one process that have not proven to be of the job.
constexpr int kMostUnknownOfOne = 8;
// How long such a connection is kept when descriptors are scarce: a rank may have to wait for a
// processor before it can answer.
constexpr std::chrono::milliseconds kLeastAge{200};
// When so many outsiders have come within this time, the listener pauses until it is over.
constexpr int kMostOutsiders = 256;
constexpr std::chrono::milliseconds kWindow{10};
// How long accept() may fail, for want of descriptors for instance, before the job is given up.
constexpr std::chrono::seconds kAcceptPatience{5};
constexpr std::chrono::milliseconds kAcceptPause{20};

bool may_pass(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Rendezvous::~Rendezvous() {
  for (Connection& connection : connections_) close_connection(connection);
  for (const Member& member : members_) {
    if (member.pidfd >= 0) close(member.pidfd);
  }
  if (listener_ >= 0) close(listener_);
  segments_.push_back(directory_);
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
  const mob_status_t status = job::ShmDirectory::create(size, &directory_.descriptor);
  return status != MOB_OK ? status : job::control_map(directory_.descriptor, &directory_.block);
}

mob_status_t Rendezvous::open(mob_rank_t size, int32_t hosts) {
  members_.resize(static_cast<size_t>(size));
  mob_status_t status = job::make_secret(&secret_);
  if (status == MOB_OK) status = nonces_.open();
  if (status == MOB_OK) status = make_segments(size, hosts);
  if (status != MOB_OK) return status;
  key_ = job::to_hex(secret_);
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address;
  const socklen_t length = job::job_address(secret_, &address);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_, kBacklog) != 0) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "cannot make the socket that ranks join at");
  }
  poller_.add(listener_, EPOLLIN, {Source::kListener});
  return MOB_OK;
}

void Rendezvous::on_listener() { accept_some(kAcceptsPerTurn); }

void Rendezvous::accept_some(int most) {
  for (int i = 0; i < most; ++i) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
      const int error = errno;
      if (error == EAGAIN) return;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (may_pass(error) && drop_oldest_unknown(kLeastAge)) continue;
      accept_failed(error);
      return;
    }
    failing_since_ = kNever;
    ucred peer{};
    if (os::is_same_user(descriptor, &peer)) {
      add_connection(descriptor, peer.pid);
      continue;
    }
    close(descriptor);
    report(peer.pid, "is another user's");
    count_outsider();
  }
}

// Ranks wait for an answer and cannot be told, so the job must not go on for long like this.
void Rendezvous::accept_failed(int error) {
  const auto now = Clock::now();
  if (failing_since_ == kNever) failing_since_ = now;
  pause_until(now + kAcceptPause);
  if (failure_.empty() && (!may_pass(error) || now - failing_since_ > kAcceptPatience)) {
    failure_ = fmt::format("ranks cannot join, because accepting their connections fails: {}{}",
                           std::strerror(error),
                           error == EMFILE ? "; raise the number of files with ulimit -Hn" : "");
  }
}

void Rendezvous::add_connection(int descriptor, pid_t pid) {
  make_room(pid);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(connections_.size()));
    connections_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  Connection& connection = connections_[slot];
  connection = {descriptor, pid, -1, nonces_.next(), Clock::now(), {}};
  connection.unknown = unknown_.insert(unknown_.end(), slot);
  poller_.add(descriptor, EPOLLIN, {Source::kConnection, slot});
  Message challenge;
  challenge.type = MessageType::kChallenge;
  challenge.nonce = connection.nonce;
  // The socket's buffer is empty, so this never waits.
  os::send_message(descriptor, &challenge, sizeof challenge, -1);
}

void Rendezvous::pause_until(Clock::time_point time) {
  if (resume_at_ == kNever) poller_.remove(listener_);
  resume_at_ = time;
}

void Rendezvous::on_time(Clock::time_point now) {
  if (now < resume_at_) return;
  resume_at_ = kNever;
  poller_.add(listener_, EPOLLIN, {Source::kListener});
}

void Rendezvous::count_outsider() {
  const auto now = Clock::now();
  if (now - window_began_ > kWindow) {
    window_began_ = now;
    outsiders_ = 0;
  }
  if (++outsiders_ == kMostOutsiders && resume_at_ == kNever) pause_until(window_began_ + kWindow);
}

// Outsiders can connect as often as they like, so only the first few are logged.
void Rendezvous::report(pid_t pid, const char* what) {
  if (reported_ == kMostReports) return;
  ++reported_;
  say("warning: turned away process {}, which connected to this job's socket and {}{}", pid, what,
      reported_ == kMostReports ? "; more of this is not reported" : "");
}

// A process that connects without pause makes room at its own cost. Processes whose id is not known
// here, in another namespace of process ids, all have the id 0.
void Rendezvous::make_room(pid_t pid) {
  int of_process = 0;
  uint32_t oldest = 0;
  for (const uint32_t slot : unknown_) {
    if (pid != 0 && connections_[slot].pid == pid && of_process++ == 0) oldest = slot;
  }
  if (of_process >= kMostUnknownOfOne) drop_if_silent(oldest);
  while (unknown_.size() >= members_.size() + kMostUnknown &&
         drop_oldest_unknown(std::chrono::milliseconds(0))) {
  }
}

// Reads what an unknown connection has sent, and closes it if that is nothing.
void Rendezvous::drop_if_silent(uint32_t slot) {
  on_connection(slot);
  Connection& connection = connections_[slot];
  if (connection.descriptor < 0 || connection.rank >= 0) return;
  count_outsider();
  close_connection(connection);
}

// False if there is none that is old enough.
bool Rendezvous::drop_oldest_unknown(std::chrono::milliseconds least_age) {
  if (unknown_.empty()) return false;
  const uint32_t oldest = unknown_.front();
  if (Clock::now() - connections_[oldest].since < least_age) return false;
  drop_if_silent(oldest);
  return true;
}

void Rendezvous::on_connection(uint32_t slot) {
  for (int i = 0; i < kMessagesPerTurn && connections_[slot].descriptor >= 0; ++i) {
    if (!receive(connections_[slot])) return;
  }
}

void Rendezvous::catch_up(const std::vector<mob_rank_t>& ended) {
  accept_some(kBacklog);
  const std::vector<uint32_t> unknown(unknown_.begin(), unknown_.end());
  for (const uint32_t slot : unknown) on_connection(slot);
  for (const mob_rank_t rank : ended) {
    const Member& member = members_[static_cast<size_t>(rank)];
    if (member.state != State::kJoined) continue;
    if (member.pidfd < 0) on_connection(member.slot);
    if (member.pidfd >= 0) on_detached(rank);
  }
}

// False when there is nothing more to receive now.
bool Rendezvous::receive(Connection& connection) {
  // A longer message than ours is recognised by MSG_TRUNC; descriptors that an outsider attaches
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
    // A process of another version proves itself in another way; it gets a refusal and nothing
    // more.
    const bool is_of_job = whole && (message.version != job::kProtocolVersion ||
                                     job::is_proven(message, secret_, connection.nonce));
    if (is_of_job && message.type == MessageType::kAbort) on_abort(message);
    if (is_of_job && message.type == MessageType::kSpawn) on_spawn(message);
    if (got > 0 && !is_of_job) report(connection.pid, "is not of this job");
    const bool joined =
        is_of_job && message.type == MessageType::kHello && welcome(connection, message);
    if (!joined) {
      if (!is_of_job) count_outsider();
      close_connection(connection);
    }
    return joined;
  }
  const bool is_goodbye = whole && message.type == MessageType::kGoodbye;
  const bool gives_up = whole && message.type == MessageType::kGivesUp;
  if (got > 0 && !is_goodbye && !gives_up) return true;  // not for us
  if (is_goodbye || gives_up) {
    note(rank, is_goodbye ? State::kLeft : State::kLost);
  } else if (!detach(rank)) {
    note(rank, state_in_segment(rank) == job::ProcessState::kLeft ? State::kLeft : State::kLost);
  }
  close_connection(connection);
  return false;
}

void Rendezvous::note(mob_rank_t rank, State state) {
  members_[static_cast<size_t>(rank)].state = state;
  if (state == State::kLost) ++lost_;
  changes_.push_back({rank, state});
}

// The connection of a rank has ended. If the rank has closed its descriptors and goes on in the
// job, it is watched from now on by a pidfd. False if it has ended or runs another program now.
bool Rendezvous::detach(mob_rank_t rank) {
  Member& member = members_[static_cast<size_t>(rank)];
  const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, member.pid, 0));
  if (pidfd < 0) return false;
  // A process gives up its memory before its files, both when it ends and when it executes another
  // program.
  if (!os::has_mapped(member.pid, segment_of(rank).descriptor).value_or(true)) {
    close(pidfd);
    return false;
  }
  member.pidfd = pidfd;
  poller_.add(pidfd, EPOLLIN, {Source::kDetached, static_cast<uint32_t>(rank)});
  return true;
}

void Rendezvous::on_detached(mob_rank_t rank) {
  Member& member = members_[static_cast<size_t>(rank)];
  pollfd ended{member.pidfd, POLLIN, 0};
  if (member.pidfd < 0 || poll(&ended, 1, 0) <= 0) return;
  close(member.pidfd);
  member.pidfd = -1;
  note(rank, state_in_segment(rank) == job::ProcessState::kLeft ? State::kLeft : State::kLost);
}

job::Place Rendezvous::place_of(mob_rank_t rank) const {
  if (rank < layout_.size()) return layout_.place_of(rank);
  return has_virtual_hosts() ? host_worlds_.place_of(rank) : job::Place{0, rank};
}

const Rendezvous::Segment& Rendezvous::segment_of(mob_rank_t rank) const {
  return segments_[static_cast<size_t>(place_of(rank).host)];
}

job::ProcessState Rendezvous::state_in_segment(mob_rank_t rank) const {
  return segment_of(rank)
      .block->slot(place_of(rank).index)
      .state.load(std::memory_order_acquire);  // as in Liveness
}

void Rendezvous::on_abort(const Message& message) {
  if (message.version != job::kProtocolVersion || message.rank < 0 ||
      message.rank >= static_cast<mob_rank_t>(members_.size())) {
    return;
  }
  members_[static_cast<size_t>(message.rank)].aborted = true;
}

void Rendezvous::on_spawn(const Message& message) {
  if (message.version == job::kProtocolVersion) worlds_.push_back(message.size);
}

void Rendezvous::grow(mob_rank_t size) {
  if (static_cast<size_t>(size) > members_.size()) members_.resize(static_cast<size_t>(size));
}

void Rendezvous::declare_dead(mob_rank_t rank) {
  if (segments_.empty()) return;
  // A process that is given up may have no place yet.
  const job::Place place = place_of(rank);
  if (place.host >= 0) job::declare_dead(segment_of(rank).block->slot(place.index));
  if (directory_.block != nullptr) job::declare_dead(directory_.block->slot(rank));
}

bool Rendezvous::welcome(Connection& connection, const Message& hello) {
  const auto size = static_cast<mob_rank_t>(members_.size());
  if (hello.version != job::kProtocolVersion) {
    return refuse(connection, hello,
                  fmt::format("the launcher speaks protocol {}, this libmobius {}; use "
                              "the mobius command that came with it",
                              job::kProtocolVersion, hello.version));
  }
  if (hello.rank < 0 || hello.rank >= size) {
    return refuse(connection, hello,
                  fmt::format("rank {} is not in 0 ... {}; leave {} as mobius run sets it",
                              hello.rank, size - 1, job::kRankVariable));
  }
  if (place_of(hello.rank).host < 0) {
    return refuse(connection, hello, fmt::format("rank {} has no host", hello.rank));
  }
  Member& member = members_[static_cast<size_t>(hello.rank)];
  if (member.state == State::kJoined) {
    return refuse(connection, hello,
                  fmt::format("rank {} is already taken by process {}; a program that is "
                              "a job of its own needs {} unset",
                              hello.rank, member.pid, job::kJobVariable));
  }
  if (member.state != State::kAbsent) {
    return refuse(connection, hello,
                  fmt::format("rank {} has left the job (process {}); a rank joins once "
                              "per mobius run",
                              hello.rank, member.pid));
  }
  Message welcome;
  welcome.type = MessageType::kWelcome;
  welcome.rank = hello.rank;
  welcome.size = size;
  welcome.pid = connection.pid;
  welcome.hosts = layout_.hosts();
  if (!answer(connection, welcome, hello, segment_of(hello.rank).descriptor)) return false;
  if (directory_.block != nullptr) {
    welcome.type = MessageType::kDirectory;
    if (!answer(connection, welcome, hello, directory_.descriptor)) return false;
  }
  connection.rank = hello.rank;
  unknown_.erase(connection.unknown);
  member.state = State::kJoined;
  member.pid = connection.pid;
  member.slot = static_cast<uint32_t>(&connection - connections_.data());
  ++joined_;
  changes_.push_back({hello.rank, State::kJoined});
  return true;
}

bool Rendezvous::refuse(const Connection& connection, const Message& hello,
                        const std::string& reason) {
  Message refusal;
  refusal.type = MessageType::kRefused;
  reason.copy(refusal.reason, sizeof refusal.reason - 1);
  answer(connection, refusal, hello, -1);
  return false;
}

// The socket's buffer has room at this point of the protocol, so this never waits.
bool Rendezvous::answer(const Connection& connection, Message message, const Message& hello,
                        int descriptor) {
  message.nonce = connection.nonce;
  job::seal(message, secret_, hello.nonce);
  return os::send_message(connection.descriptor, &message, sizeof message, descriptor) ==
         static_cast<ssize_t>(sizeof message);
}

void Rendezvous::close_connection(Connection& connection) {
  if (connection.descriptor < 0) return;
  close(connection.descriptor);
  if (connection.rank < 0) unknown_.erase(connection.unknown);
  free_.push_back(static_cast<uint32_t>(&connection - connections_.data()));
  connection = {};
}

}  // namespace mobius::launch
