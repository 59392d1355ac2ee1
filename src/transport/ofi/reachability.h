// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether a process still listens at a peer's address. Providers over TCP do not tell: they repeat
// their attempts to connect, and only answer "not yet". This class asks the kernel instead: it
// connects a socket of its own, and closes it.

#include <sys/socket.h>

#include <cstdint>

namespace mobius::transport::ofi {

class Reachability {
 public:
  Reachability() = default;
  ~Reachability() { stop(); }
  Reachability(const Reachability&) = delete;
  Reachability& operator=(const Reachability&) = delete;

  // Call it when the provider answered a send or transfer with "not yet"; `address` is the peer's.
  // Asks the kernel now and then, first after a second of such answers. Returns an errno if no
  // process listens there, else 0. Never blocks.
  int refused(const sockaddr_storage& address, uint64_t now_ns);

  // Call it when the provider took a send or transfer.
  void accepted();

 private:
  void stop();
  int ask(const sockaddr_storage& address);

  uint64_t next_ns_ = 0;  // when to ask; 0: nothing was refused since the last success
  uint64_t pause_ns_ = 0;
  int socket_ = -1;
};

}  // namespace mobius::transport::ofi
