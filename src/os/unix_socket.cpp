// SPDX-License-Identifier: BSD-3-Clause
#include "os/unix_socket.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace mobius::os {
namespace {

using base::fail;
using base::fail_errno;

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

template <typename Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// The descriptor that came with a message, or -1.
int received_descriptor(msghdr& header) {
  int descriptor = -1;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
    }
  }
  return descriptor;
}

}  // namespace

UnixSocket& UnixSocket::operator=(UnixSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void UnixSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

mob_status_t UnixSocket::connect(const sockaddr_un& address, socklen_t length) {
  close();
  descriptor_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "making a Unix socket failed");
  if (retry([&] { return ::connect(descriptor_, generic(address), length); }) != 0) {
    const int error = errno;
    close();
    return fail_errno(MOB_ERR_SYSTEM, error, "connecting failed");
  }
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(descriptor_, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0 ||
      credentials.uid != geteuid()) {
    close();
    return fail(MOB_ERR_SYSTEM, "connecting failed: the other side belongs to another user");
  }
  return MOB_OK;
}

mob_status_t UnixSocket::send(const void* message, size_t bytes) {
  const ssize_t sent = retry([&] { return ::send(descriptor_, message, bytes, MSG_NOSIGNAL); });
  if (sent == static_cast<ssize_t>(bytes)) return MOB_OK;
  return fail_errno(MOB_ERR_SYSTEM, sent < 0 ? errno : EMSGSIZE, "sending failed");
}

mob_status_t UnixSocket::receive(void* message, size_t bytes, int* descriptor) {
  iovec piece{message, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got = retry([&] { return recvmsg(descriptor_, &header, MSG_CMSG_CLOEXEC); });
  if (got < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "receiving failed");
  const int received = received_descriptor(header);
  if (got == static_cast<ssize_t>(bytes) && (header.msg_flags & MSG_TRUNC) == 0) {
    *descriptor = received;
    return MOB_OK;
  }
  if (received >= 0) ::close(received);
  return fail(MOB_ERR_SYSTEM, got == 0 ? "receiving failed: the other side closed the connection"
                                       : "receiving failed: a message of the wrong size came");
}

}  // namespace mobius::os
