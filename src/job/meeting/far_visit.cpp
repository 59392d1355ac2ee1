// SPDX-License-Identifier: BSD-3-Clause
// What a process does that comes to a port of another host.

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/status.h"
#include "job/meeting/far_port.h"
#include "job/port.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

using base::fail;

constexpr int kFarLookMs = 1;
// For one address: the kernel's second and third attempt fall into this time.
constexpr uint64_t kConnectNs = 4'000'000'000;

// Waits until the socket has one of the events, or an error ends the wait.
mob_status_t await(const char* call, int descriptor, short events, const PortWait& wait) {
  pollfd there{descriptor, events, 0};
  while (poll(&there, 1, kFarLookMs) <= 0) {
    wait.work();
    if (const mob_status_t status = wait.look()) return status;
    if (os::now_ns() >= wait.end_ns) {
      return fail(MOB_ERR_PEER, "%s: nobody has accepted in the time that was given", call);
    }
  }
  return MOB_OK;
}

// Holds nothing if the address cannot be reached; `*reason` says why.
mob_status_t connect_to(const char* call, const sockaddr_storage& address, const PortWait& wait,
                        os::HeldDescriptor* socket, std::string* reason) {
  *socket = os::start_connection(address);
  int state = socket->is_held() ? 0 : -errno;
  PortWait shorter = wait;
  shorter.end_ns = std::min(wait.end_ns, os::now_ns() + kConnectNs);
  while (state == 0) {
    if (os::now_ns() >= shorter.end_ns) {
      state = -ETIMEDOUT;
      break;
    }
    pollfd there{socket->get(), POLLOUT, 0};
    if (poll(&there, 1, kFarLookMs) <= 0) {
      wait.work();
      if (const mob_status_t status = wait.look()) return status;
    }
    state = os::has_connected(socket->get());
  }
  if (state > 0) return MOB_OK;
  socket->close();
  *reason +=
      (reason->empty() ? "" : ", ") + os::endpoint_text(address) + ": " + std::strerror(-state);
  return fail(MOB_ERR_PEER, "%s: no such port is open (%s)", call, reason->c_str());
}

mob_status_t hear_far(const char* call, int descriptor, const PortWait& wait, Message* message) {
  auto* const to = reinterpret_cast<unsigned char*>(message);
  for (size_t got = 0; got < sizeof *message;) {
    if (const mob_status_t status = await(call, descriptor, POLLIN, wait)) return status;
    const ssize_t now = os::receive_some(descriptor, to + got, sizeof *message - got);
    if (now < 0) {
      return fail(MOB_ERR_PEER, "%s: the port was closed, or its process died", call);
    }
    got += static_cast<size_t>(now);
  }
  message->reason[sizeof message->reason - 1] = '\0';
  if (message->magic == kProtocolMagic && message->version == kProtocolVersion) return MOB_OK;
  return fail(MOB_ERR_PEER, "%s: the port is one of another version of Möbius", call);
}

mob_status_t greet(const char* call, os::HeldDescriptor& socket, const FarGreeting& greeting,
                   const PortWait& wait, FarAnswer* answer) {
  const int descriptor = socket.get();
  const auto unexpected = [&] {
    return fail(MOB_ERR_PEER, "%s: the process at the port does not know its key", call);
  };
  Message message;
  if (const mob_status_t status = hear_far(call, descriptor, wait, &message)) return status;
  if (message.type != MessageType::kChallenge) return unexpected();
  const Nonce challenge = message.nonce;
  Message request;
  request.type = greeting.type;
  request.rank = greeting.rank;
  request.size = greeting.size;
  if (const mob_status_t status = make_random(request.nonce)) return status;
  const Nonce nonce = request.nonce;
  seal(request, greeting.key, challenge);
  if (os::send_some(descriptor, &request, sizeof request) != static_cast<ssize_t>(sizeof request)) {
    return fail(MOB_ERR_PEER, "%s: the port was closed, or its process died", call);
  }
  if (const mob_status_t status = hear_far(call, descriptor, wait, &message)) return status;
  if (!is_proven(message, greeting.key, nonce)) return unexpected();
  if (message.type == MessageType::kRefused) {
    return fail(MOB_ERR_PEER, "%s: the other job refused: %s", call, message.reason);
  }
  if (message.type != MessageType::kAccepted) return unexpected();
  answer->rank = message.rank;
  answer->size = message.size;
  answer->meeting = meeting_key(greeting.key, challenge, nonce);
  answer->channel = Channel(std::move(socket), channel_key(greeting.key, challenge, nonce), false);
  return MOB_OK;
}

}  // namespace

mob_status_t visit_far(const char* call, const std::vector<sockaddr_storage>& addresses,
                       const FarGreeting& greeting, const PortWait& wait, FarAnswer* answer) {
  std::string reason;
  mob_status_t status = fail(MOB_ERR_PEER, "%s: the port has no address", call);
  for (const sockaddr_storage& address : addresses) {
    os::HeldDescriptor socket;
    status = connect_to(call, address, wait, &socket, &reason);
    if (status == MOB_OK) return greet(call, socket, greeting, wait, answer);
    if (wait.look() != MOB_OK || os::now_ns() >= wait.end_ns) break;
  }
  return status;
}

}  // namespace mobius::job
