// SPDX-License-Identifier: BSD-3-Clause
#include "job/gathering.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "base/status.h"
#include "job/control.h"
#include "job/local_protocol.h"
#include "os/unix_socket.h"

namespace mobius::job {
namespace {

using base::fail;

Message message(MessageType type, mob_rank_t rank, mob_rank_t size, pid_t pid) {
  Message made;
  made.type = type;
  made.rank = rank;
  made.size = size;
  made.pid = pid;
  return made;
}

// Why a process that says Hello cannot be taken in; empty if it can.
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

// The first to come: waits for all the others.
mob_status_t receive_all(os::UnixListener& listener, mob_rank_t rank, mob_rank_t size,
                         int segment) {
  std::vector<bool> here(static_cast<size_t>(size));
  here[static_cast<size_t>(rank)] = true;
  for (mob_rank_t missing = size - 1; missing > 0;) {
    os::UnixSocket guest;
    pid_t pid = 0;
    if (const mob_status_t status = listener.accept(&guest, &pid)) return status;
    Message hello;
    int unasked = -1;
    if (guest.receive(&hello, sizeof hello, &unasked) != MOB_OK) continue;
    if (unasked >= 0) close(unasked);
    const std::string reason = objection(hello, size, here);
    Message answer = message(reason.empty() ? MessageType::kWelcome : MessageType::kRefused,
                             hello.rank, size, pid);
    std::snprintf(answer.reason, sizeof answer.reason, "%s", reason.c_str());
    const mob_status_t sent = guest.send(&answer, sizeof answer, reason.empty() ? segment : -1);
    if (sent != MOB_OK || !reason.empty()) continue;
    here[static_cast<size_t>(hello.rank)] = true;
    --missing;
  }
  return MOB_OK;
}

mob_status_t host(os::UnixListener& listener, mob_rank_t rank, mob_rank_t size, int* segment) {
  int made = -1;
  mob_status_t status = control_create(size, &made);
  if (status == MOB_OK) status = receive_all(listener, rank, size, made);
  if (status == MOB_OK) {
    *segment = made;
  } else if (made >= 0) {
    close(made);
  }
  return status;
}

// `*again` becomes true when nobody hosts any more, or not yet.
mob_status_t visit(const sockaddr_un& address, socklen_t length, mob_rank_t rank, mob_rank_t size,
                   int* segment, bool* pid_is_shared, bool* again) {
  os::UnixSocket host;
  const mob_status_t connected = host.connect(address, length, again);
  if (connected != MOB_OK) return connected;
  const Message hello = message(MessageType::kHello, rank, size, getpid());
  Message answer;
  int descriptor = -1;
  mob_status_t status = host.send(&hello, sizeof hello);
  if (status == MOB_OK) status = host.receive(&answer, sizeof answer, &descriptor);
  if (status != MOB_OK) {
    return fail(MOB_ERR_PEER, "the process that the others of this job were to join at has ended");
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

mob_status_t gather(const std::string& key, mob_rank_t rank, mob_rank_t size, int* segment,
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
    const mob_status_t status = visit(address, length, rank, size, segment, pid_is_shared, &again);
    if (!again) return status;
    sched_yield();  // between its bind() and its listen(), or it has just ended
  }
}

}  // namespace mobius::job
