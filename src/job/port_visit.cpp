// SPDX-License-Identifier: BSD-3-Clause
// What a process does that connects to a port.

#include <poll.h>
#include <unistd.h>

#include <string>

#include "base/status.h"
#include "job/port.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

using base::fail;

// Waits for the next message of the port.
mob_status_t hear(const char* call, os::UnixSocket& socket, const PortWait& wait, Message* message,
                  int* descriptor) {
  constexpr int kLookMs = 1;
  pollfd there{socket.descriptor(), POLLIN, 0};
  while (poll(&there, 1, kLookMs) <= 0) {
    wait.work();
    if (const mob_status_t status = wait.look()) return status;
    if (os::now_ns() >= wait.end_ns) {
      return fail(MOB_ERR_PEER, "%s: nobody has accepted in the time that was given", call);
    }
  }
  if (socket.receive(message, sizeof *message, descriptor) != MOB_OK) {
    return fail(MOB_ERR_PEER, "%s: the port was closed, or its process died", call);
  }
  message->reason[sizeof message->reason - 1] = '\0';
  if (message->magic == kProtocolMagic && message->version == kProtocolVersion) return MOB_OK;
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
  return fail(MOB_ERR_PEER, "%s: the port is one of another version of Möbius", call);
}

mob_status_t unreachable(const char* call) {
  return fail(MOB_ERR_PEER,
              "%s: one of the two jobs is on several hosts, and the port cannot be reached from "
              "other hosts (its job has hooks, MOBIUS_HOOKS)",
              call);
}

// Connects, proves the key, and gets the answer. `far` is what the text of the port says or, with a
// name, out. If the port is to be reached by TCP, it is `admission->far` and nothing else happens.
mob_status_t ask(const char* call, const char* name, PortText far, bool may_be_near,
                 Message request, const PortWait& wait, Admission* admission) {
  Secret* const key = &far.key;
  sockaddr_un address{};
  const socklen_t length =
      name != nullptr
          ? os::abstract_address("mobius-name-" + std::to_string(geteuid()) + "-" + name, &address)
          : os::abstract_address("mobius-port-" + to_hex(derive(*key, "port")), &address);
  os::UnixSocket socket;
  auto problem = os::UnixSocket::Problem::kNone;
  if (socket.connect(address, length, &problem) != MOB_OK) {
    const bool is_absent = problem == os::UnixSocket::Problem::kAbsent;
    if (is_absent && far.is_far()) {
      admission->far = std::move(far);
      return MOB_OK;
    }
    const std::string reason = is_absent ? "no such port is open on this host" : mob_last_error();
    return fail(MOB_ERR_PEER, "%s: %s%s%s", call, reason.c_str(), name != nullptr ? ": " : "",
                name != nullptr ? name : "");
  }
  Nonce nonce{};
  if (const mob_status_t status = make_random(nonce)) return status;
  Message message;
  int descriptor = -1;
  const auto unexpected = [&] {
    if (descriptor >= 0) close(descriptor);
    return fail(MOB_ERR_PEER, "%s: the process at the port does not know its key", call);
  };
  if (name != nullptr) {
    if (const mob_status_t status = hear(call, socket, wait, &message, &descriptor)) return status;
    if (message.type != MessageType::kKey || descriptor >= 0) return unexpected();
    *key = message.nonce;
    if (!parse_far_text(message.reason, &far.addresses)) return unexpected();
    if (!may_be_near || message.hosts > 1) {
      admission->far = std::move(far);
      return admission->far.is_far() ? MOB_OK : unreachable(call);
    }
  }
  if (const mob_status_t status = hear(call, socket, wait, &message, &descriptor)) return status;
  if (message.type != MessageType::kChallenge || descriptor >= 0) return unexpected();
  request.pid = getpid();
  request.nonce = nonce;
  seal(request, *key, message.nonce);
  if (socket.send(&request, sizeof request) != MOB_OK) {
    return fail(MOB_ERR_PEER, "%s: the port was closed, or its process died", call);
  }
  if (const mob_status_t status = hear(call, socket, wait, &message, &descriptor)) return status;
  if (!is_proven(message, *key, nonce)) return unexpected();
  if (message.type == MessageType::kRefused) {
    if (descriptor >= 0) close(descriptor);
    return fail(MOB_ERR_PEER, "%s: the other job refused: %s", call, message.reason);
  }
  if (message.type != MessageType::kAccepted) return unexpected();
  if (descriptor < 0) {
    return fail(MOB_ERR_SYSTEM, "%s: no descriptor is left for the shared memory (ulimit -n)",
                call);
  }
  admission->segment = descriptor;
  admission->first = message.rank;
  admission->others = message.size;
  admission->pid_is_shared = message.pid == request.pid;
  admission->key = *key;
  admission->socket = std::move(socket);
  return MOB_OK;
}

}  // namespace

mob_status_t visit(const char* call, std::string_view where, mob_rank_t count, bool may_be_near,
                   const PortWait& wait, Admission* admission) {
  Message request;
  request.type = MessageType::kConnect;
  request.size = count;
  PortText text;
  if (!parse_port_text(where, &text)) {
    return ask(call, std::string(where).c_str(), {}, may_be_near, request, wait, admission);
  }
  if (may_be_near) return ask(call, nullptr, text, true, request, wait, admission);
  if (!text.is_far()) return unreachable(call);
  admission->far = std::move(text);
  return MOB_OK;
}

mob_status_t visit_as_member(const char* call, const Secret& key, mob_rank_t first,
                             mob_rank_t index, const PortWait& wait, Admission* admission) {
  Message request;
  request.type = MessageType::kMember;
  request.rank = index;
  request.size = first;
  return ask(call, nullptr, {key, {}}, true, request, wait, admission);
}

}  // namespace mobius::job
