// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/reachability.h"

#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace mobius::transport::ofi {
namespace {

constexpr uint64_t kFirstPause = 1'000'000'000;
constexpr uint64_t kLongestPause = 64 * kFirstPause;

// Errors that only an absent peer, host or route causes. Other errors are problems of this host.
bool says_absent(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == EHOSTDOWN || error == ENETDOWN || error == ETIMEDOUT || error == ECONNRESET;
}

}  // namespace

int Reachability::refused(const sockaddr_storage& address, uint64_t now_ns) {
  if (next_ns_ == 0) {
    pause_ns_ = kFirstPause;
    next_ns_ = now_ns + pause_ns_;
    return 0;
  }
  int error = EINPROGRESS;
  if (socket_ < 0) {
    if (now_ns < next_ns_) return 0;
    error = ask(address);
  } else {
    pollfd connected = {socket_, POLLOUT, 0};
    if (::poll(&connected, 1, 0) == 0) return 0;
    socklen_t size = sizeof error;
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == EINPROGRESS) return 0;
  stop();
  pause_ns_ = std::min(2 * pause_ns_, kLongestPause);
  next_ns_ = now_ns + pause_ns_;
  return says_absent(error) ? error : 0;
}

int Reachability::ask(const sockaddr_storage& address) {
  socket_ = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return errno;
  const bool v4 = address.ss_family == AF_INET;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return connect(socket_, generic, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) == 0 ? 0
                                                                                         : errno;
}

void Reachability::accepted() {
  if (next_ns_ == 0) return;
  next_ns_ = 0;
  stop();
}

void Reachability::stop() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace mobius::transport::ofi
