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

  // Sends one message on a connected socket; blocks.
  mob_status_t send(const void* message, size_t bytes);

  // Receives one message of exactly `bytes` bytes; blocks. Another size is an error.
  // `*descriptor` is the descriptor that came with it, owned by the caller, or -1.
  mob_status_t receive(void* message, size_t bytes, int* descriptor);

  void close();
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace mobius::os
