// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "os/file/interfaces.h"

namespace mobius::os {
namespace {

constexpr int kTcpBacklog = 256;
// A host that has vanished is noticed after about 20 seconds without traffic.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 3;
constexpr int kProbes = 3;

socklen_t length_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

void set_option(int descriptor, int level, int name, int value) {
  static_cast<void>(setsockopt(descriptor, level, name, &value, sizeof value));
}

void prepare(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

int open_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// The result of one send() or recv().
ssize_t outcome(ssize_t moved) {
  if (moved > 0) return moved;
  if (moved == 0) {
    errno = 0;
    return -1;
  }
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
}

}  // namespace

uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void set_port(sockaddr_storage* address, uint16_t port) {
  if (address->ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

std::string endpoint_text(const sockaddr_storage& address) {
  const std::string ip = ip_text(address);
  const std::string port = std::to_string(port_of(address));
  return address.ss_family == AF_INET6 ? "[" + ip + "]:" + port : ip + ":" + port;
}

HeldDescriptor start_connection(const sockaddr_storage& to) {
  HeldDescriptor made(open_socket(to.ss_family));
  if (!made.is_held()) return {};
  const int descriptor = made.get();
  prepare(descriptor);
  const auto* generic = reinterpret_cast<const sockaddr*>(&to);
  if (connect(descriptor, generic, length_of(to)) == 0 || errno == EINPROGRESS || errno == EINTR) {
    return made;
  }
  const int error = errno;
  made.close();
  errno = error;
  return {};
}

int has_connected(int descriptor) {
  pollfd wanted{descriptor, POLLOUT, 0};
  if (poll(&wanted, 1, 0) <= 0) return 0;
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? 1 : -error;
}

ssize_t send_some(int descriptor, const void* data, size_t bytes) {
  while (true) {
    const ssize_t sent = send(descriptor, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    return outcome(sent);
  }
}

ssize_t receive_some(int descriptor, void* data, size_t bytes) {
  while (true) {
    const ssize_t got = recv(descriptor, data, bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    return outcome(got);
  }
}

mob_status_t TcpListener::listen() {
  for (const int family : {AF_INET6, AF_INET}) {
    HeldDescriptor made(open_socket(family));
    if (!made.is_held()) continue;
    const int descriptor = made.get();
    if (family == AF_INET6) set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_storage address{};  // zeros: any address, any port
    address.ss_family = static_cast<sa_family_t>(family);
    socklen_t length = length_of(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(descriptor, generic, length) != 0 || ::listen(descriptor, kTcpBacklog) != 0 ||
        getsockname(descriptor, generic, &length) != 0) {
      continue;
    }
    port_ = port_of(address);
    has_v6_ = family == AF_INET6;
    socket_ = std::move(made);
    return MOB_OK;
  }
  return base::fail_errno(MOB_ERR_SYSTEM, errno, "no TCP socket can listen for other hosts");
}

HeldDescriptor TcpListener::accept(sockaddr_storage* from) {
  *from = {};
  socklen_t length = sizeof *from;
  HeldDescriptor taken(accept4(socket_.get(), reinterpret_cast<sockaddr*>(from), &length,
                               SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (taken.is_held()) prepare(taken.get());
  // An IPv4 address in the form of IPv6.
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(*from);
  if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = v6.sin6_port;
    std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    *from = {};
    std::memcpy(from, &v4, sizeof v4);
  }
  return taken;
}

}  // namespace mobius::os
