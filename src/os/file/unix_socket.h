// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Unix sockets between processes of one user: messages that may carry a descriptor. The kernel
// vouches for the sender's identity.

#include <mobius/status.h>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <string_view>

#include "os/file/held_descriptor.h"

namespace mobius::os {

// The abstract address of that name, which is in no file system; the result is its length. The name
// has at most 107 bytes.
socklen_t abstract_address(std::string_view name, sockaddr_un* address);

// Whether the other end of a connected socket belongs to this user; `peer` gets its identity, as
// the kernel knows it.
bool is_same_user(int connection, ucred* peer);

// In place of a descriptor: one came along, and this process can have no more (ulimit -n).
inline constexpr int kDescriptorLost = -2;

// As sendmsg() and recvmsg() of one message, restarted when a signal interrupts them. Sending: a
// descriptor >= 0 is sent along as a copy. Receiving: `*descriptor` is the one that was received,
// owned by the caller, or -1. For a message longer than the buffer the whole length is returned.
ssize_t send_message(int connection, const void* message, size_t bytes, int descriptor);
ssize_t receive_message(int connection, void* message, size_t bytes, int* descriptor);

// Once the program has closed the socket's descriptor, calls fail and leave the number alone.
class UnixSocket {
 public:
  // Connects a SOCK_SEQPACKET socket; refuses a peer of another user. The error text ends with the
  // reason only; the caller adds the name of the expected peer. `*problem` says more of the reason.
  enum class Problem { kNone, kAbsent, kOtherUser, kOther };  // absent: no process listens there
  mob_status_t connect(const sockaddr_un& address, socklen_t length, Problem* problem = nullptr);

  // Has the kernel kill this process (SIGKILL) when the other side closes the connection or dies,
  // until it is called with false. Costs neither a thread nor a look. Where the kernel cannot do
  // it, nothing happens.
  void kill_on_close(bool kill);

  // Sends one message on a connected socket; blocks. A descriptor >= 0 is sent along as a copy.
  mob_status_t send(const void* message, size_t bytes, int descriptor = -1);

  // Receives one message of exactly `bytes` bytes; blocks. Another size is an error. `*descriptor`
  // is the received descriptor, owned by the caller, or -1.
  mob_status_t receive(void* message, size_t bytes, int* descriptor);

  void close() { descriptor_.close(); }
  bool is_open() const { return descriptor_.is_held(); }
  int descriptor() const { return descriptor_.get(); }

 private:
  friend class UnixListener;

  HeldDescriptor descriptor_;
};

// A socket to which other processes connect.
class UnixListener {
 public:
  UnixListener() = default;
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener() { close(); }

  // Binds an address. `*taken` says that another process has it already, which is not an error.
  mob_status_t listen(const sockaddr_un& address, socklen_t length, bool* taken);

  // Takes the next connection; `*is_empty`: there is none now. `*pid` is the process's id in this
  // process's namespace. A process of another user is refused, which leaves `*connection`
  // unchanged. Keeps errno after an error.
  mob_status_t accept(UnixSocket* connection, pid_t* pid, bool* is_empty);

  void close();
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace mobius::os
