// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/join_by_address.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/rejection_log.h"
#include "job/control.h"
#include "os/file/unix_socket.h"

namespace mobius::job {
namespace {

using base::fail;
using base::fail_errno;

// Addresses that are tried when other users have taken the first ones.
constexpr unsigned kMostAttempts = 8;
// How often the host at a later address looks whether the job joins at an earlier one.
constexpr int kLookMs = 200;
constexpr timespec kPause{0, 2'000'000};

// The outcome of an attempt at one address.
enum class Result {
  kDone,     // joined, or failed for good
  kAgain,    // the host has ended or joins elsewhere: start again
  kOccupied  // another user has the address
};

struct Joined {
  int segment = -1;
  bool pid_is_shared = false;
};

Message message(MessageType type, mob_rank_t rank, mob_rank_t size, pid_t pid) {
  Message made;
  made.type = type;
  made.rank = rank;
  made.size = size;
  made.pid = pid;
  return made;
}

void pause_a_moment() { nanosleep(&kPause, nullptr); }

// Run by the first process: waits for all others and then sends each of them the segment.
// Connections that send nothing keep nobody out.
class SegmentHost {
 public:
  SegmentHost(const JoinAddress& job, os::UnixListener& listener, unsigned attempt)
      : job_(job), listener_(listener), attempt_(attempt) {}

  Result run(mob_status_t* status, int* segment) {
    *status = nonces_.open();
    while (*status == MOB_OK && clients_.size() + 1 < static_cast<size_t>(job_.size)) {
      bool moved = false;
      *status = wait(&moved);
      if (moved) return Result::kAgain;
    }
    int made = -1;
    if (*status == MOB_OK) *status = control_create(job_.size, &made);
    if (*status != MOB_OK) {
      for (Client& client : clients_) refuse(client, mob_last_error());
      return Result::kDone;
    }
    // A client that has died meanwhile is its launcher's business, as it is after joining.
    for (Client& client : clients_) {
      answer(client, message(MessageType::kWelcome, client.rank, job_.size, client.pid), made);
    }
    *segment = made;
    return Result::kDone;
  }

 private:
  struct Client {
    os::UnixSocket socket;
    pid_t pid = 0;
    mob_rank_t rank = -1;  // before Hello
    Nonce nonce{};         // of its Challenge
    Nonce answered{};      // of its Hello
  };

  // Connections of others than the job's processes, at one time, before they have proven
  // themselves.
  static constexpr size_t kMostUnknown = 256;
  static constexpr int kAcceptsPerTurn = 64;
  static constexpr int kMostAcceptFailures = 1000;  // in a row, each followed by a pause

  mob_status_t wait(bool* moved) {
    std::vector<pollfd> watched = {{listener_.descriptor(), POLLIN, 0}};
    for (const Client& each : unknown_) watched.push_back({each.socket.descriptor(), POLLIN, 0});
    for (const Client& each : clients_) watched.push_back({each.socket.descriptor(), 0, 0});
    const int changes = poll(watched.data(), watched.size(), attempt_ == 0 ? -1 : kLookMs);
    if (changes < 0 && errno != EINTR) {
      return fail_errno(MOB_ERR_SYSTEM, errno, "waiting for the other processes failed");
    }
    *moved = changes == 0 && is_hosted_before();
    if (changes <= 0) return MOB_OK;
    const auto unknown = static_cast<std::ptrdiff_t>(unknown_.size());
    drop_dead(std::span(watched).subspan(1 + static_cast<size_t>(unknown)));
    receive_hellos(std::span(watched).subspan(1, static_cast<size_t>(unknown)));
    return watched[0].revents != 0 ? accept_some() : MOB_OK;
  }

  // Another process of the job may have found an earlier address free that was occupied before.
  bool is_hosted_before() const {
    for (unsigned earlier = 0; earlier < attempt_; ++earlier) {
      sockaddr_un address{};
      const socklen_t length = job_address(job_.secret, &address, earlier);
      os::UnixSocket probe;
      if (probe.connect(address, length) == MOB_OK) return true;
    }
    return false;
  }

  // A process that dies before the others have come leaves its rank to be taken again.
  void drop_dead(std::span<const pollfd> watched) {
    std::vector<Client> living;
    for (size_t i = 0; i < clients_.size(); ++i) {
      if (watched[i].revents == 0) living.push_back(std::move(clients_[i]));
    }
    clients_ = std::move(living);
  }

  void receive_hellos(std::span<const pollfd> watched) {
    std::vector<Client> silent;
    for (size_t i = 0; i < unknown_.size(); ++i) {
      if (watched[i].revents != 0) {
        receive_hello(unknown_[i]);
      } else {
        silent.push_back(std::move(unknown_[i]));
      }
    }
    unknown_ = std::move(silent);
  }

  mob_status_t accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      Client client;
      bool is_empty = false;
      const mob_status_t status = listener_.accept(&client.socket, &client.pid, &is_empty);
      if (status != MOB_OK) {
        if (errno == ECONNABORTED) continue;
        const bool may_pass =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (!may_pass || ++accept_failures_ == kMostAcceptFailures) return status;
        if (!unknown_.empty()) unknown_.erase(unknown_.begin());
        pause_a_moment();
        return MOB_OK;
      }
      if (is_empty) return MOB_OK;
      accept_failures_ = 0;
      if (!client.socket.is_open()) {
        rejections_.report(client.pid, "is another user's");
        continue;
      }
      if (unknown_.size() >= kMostUnknown + static_cast<size_t>(job_.size)) {
        unknown_.erase(unknown_.begin());
      }
      client.nonce = nonces_.next();
      Message challenge = message(MessageType::kChallenge, job_.rank, job_.size, getpid());
      challenge.nonce = client.nonce;
      if (client.socket.send(&challenge, sizeof challenge) == MOB_OK) {
        unknown_.push_back(std::move(client));
      }
    }
    return MOB_OK;
  }

  // Receives the first message of a connection, and admits the process or drops the connection.
  void receive_hello(Client& client) {
    Message hello;
    int unasked = -1;
    const ssize_t got =
        os::receive_message(client.socket.descriptor(), &hello, sizeof hello, &unasked);
    if (unasked >= 0) close(unasked);
    const bool is_ours =
        got == static_cast<ssize_t>(sizeof hello) && hello.magic == kProtocolMagic &&
        (hello.version != kProtocolVersion || is_proven(hello, job_.secret, client.nonce));
    if (got > 0 && !is_ours) rejections_.report(client.pid, "is not of this job");
    if (!is_ours) return;
    client.answered = hello.nonce;
    const std::string reason = objection(hello);
    if (!reason.empty()) {
      refuse(client, reason.c_str());
      return;
    }
    client.rank = hello.rank;
    clients_.push_back(std::move(client));
  }

  // Why the process that sent `hello` cannot join; empty if it can.
  std::string objection(const Message& hello) const {
    if (hello.type != MessageType::kHello) return "not a Hello";
    if (hello.version != kProtocolVersion) {
      return "another version of libmobius speaks protocol " + std::to_string(kProtocolVersion);
    }
    if (hello.size != job_.size || hello.rank < 0 || hello.rank >= job_.size) {
      return "the job has " + std::to_string(job_.size) + " processes";
    }
    const bool is_taken =
        hello.rank == job_.rank || std::ranges::any_of(clients_, [&](const Client& client) {
          return client.rank == hello.rank;
        });
    if (is_taken) {
      return "another process has joined as rank " + std::to_string(hello.rank) +
             "; set MOBIUS_LAUNCHER=none in programs that are to be jobs of one";
    }
    return {};
  }

  void refuse(Client& client, const char* reason) {
    Message refusal = message(MessageType::kRefused, client.rank, job_.size, client.pid);
    std::snprintf(refusal.reason, sizeof refusal.reason, "%s", reason);
    answer(client, refusal, -1);
  }

  void answer(Client& client, Message message, int descriptor) {
    seal(message, job_.secret, client.answered);
    static_cast<void>(client.socket.send(&message, sizeof message, descriptor));
  }

  const JoinAddress& job_;
  os::UnixListener& listener_;
  const unsigned attempt_;
  Nonces nonces_;
  std::vector<Client> clients_;  // have said Hello
  std::vector<Client> unknown_;  // in the order of arrival
  RejectionLog rejections_;
  int accept_failures_ = 0;
};

// Joins at the process that has taken the address.
Result join_host(const JoinAddress& job, const sockaddr_un& address, socklen_t length,
                 mob_status_t* status, Joined* joined) {
  using Problem = os::UnixSocket::Problem;
  os::UnixSocket host;
  Problem problem = Problem::kNone;
  *status = host.connect(address, length, &problem);
  if (problem == Problem::kOtherUser) return Result::kOccupied;
  // Nobody listens: the host is between bind() and listen(), or has just ended.
  if (problem == Problem::kAbsent) return Result::kAgain;
  if (*status != MOB_OK) return Result::kDone;
  Message challenge;
  int unasked = -1;
  Message hello = message(MessageType::kHello, job.rank, job.size, getpid());
  if ((*status = make_random(hello.nonce)) != MOB_OK) return Result::kDone;
  if (host.receive(&challenge, sizeof challenge, &unasked) != MOB_OK) return Result::kAgain;
  if (unasked >= 0) close(unasked);
  seal(hello, job.secret, challenge.nonce);
  Message answer;
  int descriptor = -1;
  if (host.send(&hello, sizeof hello) != MOB_OK ||
      host.receive(&answer, sizeof answer, &descriptor) != MOB_OK) {
    return Result::kAgain;
  }
  answer.reason[sizeof answer.reason - 1] = '\0';
  if (!is_proven(answer, job.secret, hello.nonce)) {
    if (descriptor >= 0) close(descriptor);
    return Result::kOccupied;
  }
  if (answer.type == MessageType::kWelcome && descriptor >= 0) {
    *joined = {descriptor, answer.pid == getpid()};
    *status = MOB_OK;
    return Result::kDone;
  }
  if (descriptor >= 0) close(descriptor);
  *status =
      fail(MOB_ERR_SYSTEM, "rank %d cannot join the other processes of this job: %s", job.rank,
           answer.type == MessageType::kRefused ? answer.reason
           : descriptor == os::kDescriptorLost  ? "no descriptor is left (ulimit -n)"
                                                : "no shared memory came");
  return Result::kDone;
}

Result try_address(const JoinAddress& job, unsigned attempt, mob_status_t* status, Joined* joined) {
  sockaddr_un address{};
  const socklen_t length = job_address(job.secret, &address, attempt);
  os::UnixListener listener;
  bool taken = false;
  if ((*status = listener.listen(address, length, &taken)) != MOB_OK) return Result::kDone;
  if (taken) return join_host(job, address, length, status, joined);
  joined->pid_is_shared = true;
  return SegmentHost(job, listener, attempt).run(status, &joined->segment);
}

}  // namespace

mob_status_t join_by_address(const JoinAddress& job, int* segment, bool* pid_is_shared) {
  bool warned = false;
  for (unsigned attempt = 0; attempt < kMostAttempts;) {
    Joined joined;
    mob_status_t status = MOB_OK;
    switch (try_address(job, attempt, &status, &joined)) {
      case Result::kDone:
        *segment = joined.segment;
        *pid_is_shared = joined.pid_is_shared;
        return status;
      case Result::kAgain:
        pause_a_moment();
        attempt = 0;
        break;
      case Result::kOccupied:
        if (!std::exchange(warned, true)) {
          base::log(base::LogLevel::kWarn,
                    "another user has taken the address at which this job's processes join; they "
                    "join at another one");
        }
        ++attempt;
        break;
    }
  }
  return fail(
      MOB_ERR_SYSTEM,
      "another user has taken all %u addresses at which the processes of this job could join "
      "(abstract Unix sockets, see ss -xl); ask the administrator to end that program",
      kMostAttempts);
}

}  // namespace mobius::job
