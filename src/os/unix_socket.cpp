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

struct Ancillary {
  int descriptor = -1;
  bool same_user = false;
};

// Takes the descriptor and the credentials out of a received message.
Ancillary read_ancillary(msghdr& header) {
  Ancillary result;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&result.descriptor, CMSG_DATA(part), sizeof result.descriptor);
    } else if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
      result.same_user = credentials.uid == geteuid();
    }
  }
  return result;
}

}  // namespace

UnixSocket& UnixSocket::operator=(UnixSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(datagram_, other.datagram_);
  return *this;
}

void UnixSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

mob_status_t UnixSocket::connect(const sockaddr_un& address, socklen_t length) {
  close();
  datagram_ = false;
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

mob_status_t UnixSocket::bind_datagram(const sockaddr_un& address, socklen_t length) {
  close();
  datagram_ = true;
  descriptor_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (descriptor_ < 0 || setsockopt(descriptor_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      bind(descriptor_, generic(address), length) != 0) {
    const int error = errno;
    close();
    return fail_errno(MOB_ERR_SYSTEM, error, "making a Unix datagram socket failed");
  }
  return MOB_OK;
}

mob_status_t UnixSocket::send(const void* message, size_t bytes) {
  const ssize_t sent = retry([&] { return ::send(descriptor_, message, bytes, MSG_NOSIGNAL); });
  if (sent == static_cast<ssize_t>(bytes)) return MOB_OK;
  return fail_errno(MOB_ERR_SYSTEM, sent < 0 ? errno : EMSGSIZE, "sending failed");
}

mob_status_t UnixSocket::send_to(const sockaddr_un& address, socklen_t length, const void* message,
                                 size_t bytes, int descriptor) {
  iovec piece{const_cast<void*>(message), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  sockaddr_un destination = address;
  msghdr header{};
  header.msg_name = &destination;
  header.msg_namelen = length;
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  const ssize_t sent = retry([&] { return sendmsg(descriptor_, &header, MSG_NOSIGNAL); });
  if (sent == static_cast<ssize_t>(bytes)) return MOB_OK;
  return fail_errno(MOB_ERR_SYSTEM, sent < 0 ? errno : EMSGSIZE, "sending a descriptor failed");
}

mob_status_t UnixSocket::receive(void* message, size_t bytes, int* descriptor) {
  while (true) {
    iovec piece{message, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = retry([&] { return recvmsg(descriptor_, &header, MSG_CMSG_CLOEXEC); });
    if (got < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "receiving failed");
    const Ancillary ancillary = read_ancillary(header);
    const bool complete = got == static_cast<ssize_t>(bytes) && (header.msg_flags & MSG_TRUNC) == 0;
    if (complete && (ancillary.same_user || !datagram_)) {
      *descriptor = ancillary.descriptor;
      return MOB_OK;
    }
    if (ancillary.descriptor >= 0) ::close(ancillary.descriptor);
    if (!datagram_) {
      return fail(MOB_ERR_SYSTEM, got == 0
                                      ? "receiving failed: the other side closed the connection"
                                      : "receiving failed: a message of the wrong size came");
    }
  }
}

}  // namespace mobius::os
