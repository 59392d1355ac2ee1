// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace mobius::os {
namespace {

using base::fail;
using base::fail_errno;

// Connections that wait to be accepted.
constexpr int kBacklog = 256;

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

}  // namespace

socklen_t abstract_address(std::string_view name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());  // a leading 0: abstract
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool is_same_user(int connection, ucred* peer) {
  socklen_t bytes = sizeof *peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, peer, &bytes) == 0 &&
         peer->uid == geteuid();
}

ssize_t send_message(int connection, const void* message, size_t bytes, int descriptor) {
  iovec piece{const_cast<void*>(message), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)]{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  return retry([&] { return sendmsg(connection, &header, MSG_NOSIGNAL); });
}

ssize_t receive_message(int connection, void* message, size_t bytes, int* descriptor) {
  iovec piece{message, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof *descriptor)];
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  *descriptor = -1;
  const ssize_t got =
      retry([&] { return recvmsg(connection, &header, MSG_CMSG_CLOEXEC | MSG_TRUNC); });
  if (got < 0) return got;
  if ((header.msg_flags & MSG_CTRUNC) != 0) *descriptor = kDescriptorLost;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      std::memcpy(descriptor, CMSG_DATA(part), sizeof *descriptor);
    }
  }
  return got;
}

mob_status_t UnixSocket::connect(const sockaddr_un& address, socklen_t length, Problem* problem) {
  Problem unused = Problem::kNone;
  Problem& reason = problem != nullptr ? *problem : unused;
  reason = Problem::kOther;
  close();
  const int socket_made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket_made < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "making a Unix socket failed");
  descriptor_.hold(socket_made);
  if (retry([&] { return ::connect(socket_made, generic(address), length); }) != 0) {
    const int error = errno;
    close();
    if (error == ECONNREFUSED) reason = Problem::kAbsent;
    return fail_errno(MOB_ERR_SYSTEM, error, "connecting failed");
  }
  ucred credentials{};
  if (!is_same_user(socket_made, &credentials)) {
    close();
    reason = Problem::kOtherUser;
    return fail(MOB_ERR_SYSTEM, "connecting failed: the other side belongs to another user");
  }
  reason = Problem::kNone;
  return MOB_OK;
}

void UnixSocket::kill_on_close(bool kill) {
  // An event on the socket sends the owner a signal of our choice. After the last message of the
  // protocol, the only event left is the end of the connection.
  const int descriptor = descriptor_.get();
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0) return;
  if (!kill) {
    fcntl(descriptor, F_SETFL, flags & ~O_ASYNC);
  } else if (fcntl(descriptor, F_SETSIG, SIGKILL) == 0 &&
             fcntl(descriptor, F_SETOWN, getpid()) == 0) {
    fcntl(descriptor, F_SETFL, flags | O_ASYNC);
    // It may have ended before.
    pollfd ended{descriptor, 0, 0};
    if (poll(&ended, 1, 0) > 0) ::kill(getpid(), SIGKILL);
  }
}

mob_status_t UnixSocket::send(const void* message, size_t bytes, int descriptor) {
  const ssize_t sent = send_message(descriptor_.get(), message, bytes, descriptor);
  if (sent == static_cast<ssize_t>(bytes)) return MOB_OK;
  return fail_errno(MOB_ERR_SYSTEM, sent < 0 ? errno : EMSGSIZE, "sending failed");
}

mob_status_t UnixSocket::receive(void* message, size_t bytes, int* descriptor) {
  int received = -1;
  const ssize_t got = receive_message(descriptor_.get(), message, bytes, &received);
  if (got < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "receiving failed");
  if (got == static_cast<ssize_t>(bytes)) {
    *descriptor = received;
    return MOB_OK;
  }
  if (received >= 0) ::close(received);
  *descriptor = -1;
  return fail(MOB_ERR_SYSTEM, got == 0 ? "receiving failed: the other side closed the connection"
                                       : "receiving failed: a message of the wrong size arrived");
}

mob_status_t UnixListener::listen(const sockaddr_un& address, socklen_t length, bool* taken) {
  close();
  *taken = false;
  descriptor_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor_ < 0) return fail_errno(MOB_ERR_SYSTEM, errno, "making a Unix socket failed");
  if (bind(descriptor_, generic(address), length) == 0 && ::listen(descriptor_, kBacklog) == 0) {
    return MOB_OK;
  }
  const int error = errno;
  close();
  *taken = error == EADDRINUSE;
  return *taken ? MOB_OK : fail_errno(MOB_ERR_SYSTEM, error, "binding a Unix address failed");
}

mob_status_t UnixListener::accept(UnixSocket* connection, pid_t* pid, bool* is_empty) {
  const int descriptor =
      retry([&] { return accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC); });
  if (descriptor < 0) {
    const int error = errno;
    *is_empty = error == EAGAIN;
    if (*is_empty) return MOB_OK;
    const mob_status_t status =
        fail_errno(MOB_ERR_SYSTEM, error, "waiting for a connection failed");
    errno = error;
    return status;
  }
  *is_empty = false;
  UnixSocket accepted;
  accepted.descriptor_.hold(descriptor);
  ucred credentials{};
  const bool is_ours = is_same_user(descriptor, &credentials);
  *pid = credentials.pid;
  if (is_ours) *connection = std::move(accepted);
  return MOB_OK;
}

void UnixListener::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace mobius::os
