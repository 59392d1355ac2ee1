// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// TCP sockets between processes of different hosts. Nothing here blocks.

#include <mobius/status.h>

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "os/file/held_descriptor.h"

namespace mobius::os {

// "192.0.2.2:41233", "[fd00::2]:41233".
std::string endpoint_text(const sockaddr_storage& address);
uint16_t port_of(const sockaddr_storage& address);
void set_port(sockaddr_storage* address, uint16_t port);

// Starts to connect; holds nothing after an error, whose reason is then in errno.
HeldDescriptor start_connection(const sockaddr_storage& to);
// Whether a started connection is there: 1, 0 (not yet), or the negative errno of its failure.
int has_connected(int descriptor);

// As send() and recv(), restarted when a signal interrupts them: the bytes that were moved; 0 if
// none can be moved now; -1 if the connection is over, which errno explains (0: the other side has
// closed it).
ssize_t send_some(int descriptor, const void* data, size_t bytes);
ssize_t receive_some(int descriptor, void* data, size_t bytes);

// Listens at a port that the kernel chooses, at all addresses of this host.
class TcpListener {
 public:
  mob_status_t listen();
  // Takes the next connection; holds nothing if there is none. `*from`: its other end.
  HeldDescriptor accept(sockaddr_storage* from);

  bool is_open() const { return socket_.is_held(); }
  uint16_t port() const { return port_; }
  bool has_v6() const { return has_v6_; }
  int descriptor() const { return socket_.get(); }

 private:
  HeldDescriptor socket_;
  uint16_t port_ = 0;
  bool has_v6_ = false;
};

}  // namespace mobius::os
