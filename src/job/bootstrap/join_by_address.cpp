// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/join_by_address.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/rejection_log.h"
#include "job/control.h"
#include "os/unix_socket.h"

namespace mobius::job {
namespace {

using base::fail;
using base::fail_errno;

Message message(MessageType type, mob_rank_t rank, mob_rank_t size, pid_t pid) {
  Message made;
  made.type = type;
  made.rank = rank;
  made.size = size;
  made.pid = pid;
  return made;
}

// Why the process that sent `hello` cannot join; empty if it can.
std::string objection(const Message& hello, mob_rank_t size, const std::vector<bool>& here) {
  if (hello.magic != kProtocolMagic || hello.type != MessageType::kHello) return "not a Hello";
  if (hello.version != kProtocolVersion) {
    return "another version of libmobius speaks protocol " + std::to_string(kProtocolVersion);
  }
  if (hello.size != size || hello.rank < 0 || hello.rank >= size) {
    return "the job has " + std::to_string(size) + " processes";
  }
  if (here[static_cast<size_t>(hello.rank)]) {
    return "another process has joined as rank " + std::to_string(hello.rank) +
           "; set MOBIUS_LAUNCHER=none in programs that are to be jobs of one";
  }
  return {};
}

// Run by the first process: waits for all others. Connections that send nothing keep nobody out.
class SegmentHost {
 public:
  SegmentHost(os::UnixListener& listener, mob_rank_t rank, mob_rank_t size, int segment)
      : listener_(listener), size_(size), segment_(segment), here_(static_cast<size_t>(size)) {
    here_[static_cast<size_t>(rank)] = true;
  }

  mob_status_t receive_all() {
    while (here_of_all() < size_) {
      std::vector<pollfd> watched = {{listener_.descriptor(), POLLIN, 0}};
      for (const Client& client : silent_)
        watched.push_back({client.socket.descriptor(), POLLIN, 0});
      if (poll(watched.data(), watched.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return fail_errno(MOB_ERR_SYSTEM, errno, "waiting for the other processes failed");
      }
      std::vector<Client> silent;
      for (size_t i = 0; i < silent_.size(); ++i) {
        if (watched[i + 1].revents != 0) {
          receive_hello(silent_[i]);
        } else {
          silent.push_back(std::move(silent_[i]));
        }
      }
      silent_ = std::move(silent);
      if (watched[0].revents == 0) continue;
      if (const mob_status_t status = accept_one()) return status;
    }
    return MOB_OK;
  }

 private:
  struct Client {
    os::UnixSocket socket;
    pid_t pid = 0;
  };

  // Connections that have sent nothing yet and are not of the job, at one time.
  static constexpr mob_rank_t kMostUnknown = 64;

  mob_rank_t here_of_all() const {
    return static_cast<mob_rank_t>(std::count(here_.begin(), here_.end(), true));
  }

  mob_status_t accept_one() {
    Client client;
    const mob_status_t status = listener_.accept(&client.socket, &client.pid);
    const bool is_full = status != MOB_OK && (errno == EMFILE || errno == ENFILE);
    if (status != MOB_OK && (!is_full || silent_.empty())) return status;
    if (is_full || silent_.size() == static_cast<size_t>(size_ + kMostUnknown)) {
      silent_.erase(silent_.begin());
    }
    if (status != MOB_OK) return MOB_OK;  // the next call has a descriptor for it
    if (client.socket.is_open()) {
      silent_.push_back(std::move(client));
    } else {
      rejections_.report(client.pid, "is another user's");
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
    const bool is_ours = got == static_cast<ssize_t>(sizeof hello) && hello.magic == kProtocolMagic;
    if (got > 0 && !is_ours) rejections_.report(client.pid, "is not of this job");
    if (!is_ours) return;
    const std::string reason = objection(hello, size_, here_);
    Message answer = message(reason.empty() ? MessageType::kWelcome : MessageType::kRefused,
                             hello.rank, size_, client.pid);
    std::snprintf(answer.reason, sizeof answer.reason, "%s", reason.c_str());
    const mob_status_t sent =
        client.socket.send(&answer, sizeof answer, reason.empty() ? segment_ : -1);
    if (sent == MOB_OK && reason.empty()) here_[static_cast<size_t>(hello.rank)] = true;
  }

  os::UnixListener& listener_;
  const mob_rank_t size_;
  const int segment_;
  std::vector<bool> here_;      // by rank: has joined
  std::vector<Client> silent_;  // have sent nothing yet; in the order of arrival
  RejectionLog rejections_;
};

mob_status_t host(os::UnixListener& listener, mob_rank_t rank, mob_rank_t size, int* segment) {
  int made = -1;
  mob_status_t status = control_create(size, &made);
  if (status == MOB_OK) status = SegmentHost(listener, rank, size, made).receive_all();
  if (status == MOB_OK) {
    *segment = made;
  } else if (made >= 0) {
    close(made);
  }
  return status;
}

// `*again` becomes true if no process listens at the address now.
mob_status_t join_host(const sockaddr_un& address, socklen_t length, mob_rank_t rank,
                       mob_rank_t size, int* segment, bool* pid_is_shared, bool* again) {
  os::UnixSocket host;
  const mob_status_t connected = host.connect(address, length, again);
  if (connected != MOB_OK) return connected;
  const Message hello = message(MessageType::kHello, rank, size, getpid());
  Message answer;
  int descriptor = -1;
  mob_status_t status = host.send(&hello, sizeof hello);
  if (status == MOB_OK) status = host.receive(&answer, sizeof answer, &descriptor);
  if (status != MOB_OK) {
    return fail(MOB_ERR_PEER,
                "the process that collects the ranks of this job on this host has ended");
  }
  answer.reason[sizeof answer.reason - 1] = '\0';
  if (answer.magic == kProtocolMagic && answer.type == MessageType::kWelcome && descriptor >= 0) {
    *segment = descriptor;
    *pid_is_shared = answer.pid == getpid();
    return MOB_OK;
  }
  if (descriptor >= 0) close(descriptor);
  return fail(MOB_ERR_SYSTEM, "rank %d cannot join the other processes of this job: %s", rank,
              answer.reason);
}

}  // namespace

mob_status_t join_by_address(const std::string& key, mob_rank_t rank, mob_rank_t size, int* segment,
                             bool* pid_is_shared) {
  sockaddr_un address{};
  const socklen_t length = socket_address(key, &address);
  while (true) {
    os::UnixListener listener;
    bool taken = false;
    if (const mob_status_t status = listener.listen(address, length, &taken)) return status;
    if (!taken) {
      *pid_is_shared = true;
      return host(listener, rank, size, segment);
    }
    bool again = false;
    const mob_status_t status =
        join_host(address, length, rank, size, segment, pid_is_shared, &again);
    if (!again) return status;
    sched_yield();  // the host is between bind() and listen(), or has just ended
  }
}

}  // namespace mobius::job
