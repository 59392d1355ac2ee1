// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Unix sockets between processes of one user: messages that may carry a descriptor, with the
// sender's identity checked by the kernel.

#include <mobius/status.h>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>

namespace mobius::os {

// Whose the other end of a connected socket is, as the kernel knows; whether that is our user.
bool is_same_user(int connection, ucred* peer);

// As sendmsg() and recvmsg() of one message, done again when a signal interrupts them. A descriptor
// >= 0 goes along as a copy; `*descriptor` is the one that came along, the caller's, or -1. Of a
// longer message the whole length is returned.
ssize_t send_message(int connection, const void* message, size_t bytes, int descriptor);
ssize_t receive_message(int connection, void* message, size_t bytes, int* descriptor);

class UnixSocket {
 public:
  UnixSocket() = default;
  UnixSocket(UnixSocket&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  UnixSocket& operator=(UnixSocket&& other) noexcept;
  ~UnixSocket() { close(); }

  // Connects a SOCK_SEQPACKET socket; refuses a peer of another user. The error text ends in the
  // reason alone: the caller says who should have been there. `*absent`: nobody listens there.
  mob_status_t connect(const sockaddr_un& address, socklen_t length, bool* absent = nullptr);

  // Sends one message on a connected socket; blocks. A descriptor (>= 0) goes along as a copy.
  mob_status_t send(const void* message, size_t bytes, int descriptor = -1);

  // Receives one message of exactly `bytes` bytes; blocks. Another size is an error.
  // `*descriptor` is the descriptor that came with it, owned by the caller, or -1.
  mob_status_t receive(void* message, size_t bytes, int* descriptor);

  void close();
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  friend class UnixListener;

  int descriptor_ = -1;
};

// Where others connect to.
class UnixListener {
 public:
  UnixListener() = default;
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener() { close(); }

  // Takes an address. `*taken` says that somebody has it already, which is no error.
  mob_status_t listen(const sockaddr_un& address, socklen_t length, bool* taken);

  // Waits for a process to connect. `*pid` is its id as this process knows it; one of another user
  // is turned away, which leaves `*connection` as it was. Keeps errno after an error.
  mob_status_t accept(UnixSocket* connection, pid_t* pid);

  void close();
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace mobius::os
