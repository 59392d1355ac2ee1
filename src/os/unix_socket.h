// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Unix sockets between processes of one user: messages that may carry a descriptor, with the
// sender's identity checked by the kernel.

#include <mobius/status.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>

namespace mobius::os {

class UnixSocket {
 public:
  UnixSocket() = default;
  UnixSocket(UnixSocket&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  UnixSocket& operator=(UnixSocket&& other) noexcept;
  ~UnixSocket() { close(); }

  // Connects a SOCK_SEQPACKET socket; refuses a peer of another user. The error text ends in the
  // reason alone: the caller says who should have been there.
  mob_status_t connect(const sockaddr_un& address, socklen_t length);

  // Binds a SOCK_DGRAM socket that receives the sender's credentials.
  mob_status_t bind_datagram(const sockaddr_un& address, socklen_t length);

  // Sends one message on a connected socket; blocks.
  mob_status_t send(const void* message, size_t bytes);

  // Sends one datagram to `address` with a descriptor (duplicated by the kernel; -1: none); blocks.
  mob_status_t send_to(const sockaddr_un& address, socklen_t length, const void* message,
                       size_t bytes, int descriptor);

  // Receives one message of exactly `bytes` bytes from a process of the same user; blocks. Messages
  // of other users or sizes are dropped on a datagram socket, an error on a connected one.
  // `*descriptor` is the descriptor that came with it, owned by the caller, or -1.
  mob_status_t receive(void* message, size_t bytes, int* descriptor);

  void close();
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
  bool datagram_ = false;
};

}  // namespace mobius::os
