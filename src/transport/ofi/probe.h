// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Providers over TCP try to connect again and again, and answer only "not yet", when nobody listens
// at a peer's address any more. A probe asks the kernel: it connects a socket of its own, and
// closes it.

#include <sys/socket.h>

#include <cstdint>

namespace mobius::transport::ofi {

class Probe {
 public:
  Probe() = default;
  ~Probe() { stop(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Called when a send or transfer was answered "not yet", with the address of the peer. Every so
  // often, first after a second of such answers, it probes. Returns an errno if nobody is there,
  // else 0. Never blocks.
  int refused(const sockaddr_storage& address, uint64_t now_ns);

  // Called when one was not.
  void accepted();

 private:
  void stop();
  int ask(const sockaddr_storage& address);

  uint64_t next_ns_ = 0;  // when to probe; 0: nothing was refused since it was last accepted
  uint64_t pause_ns_ = 0;
  int socket_ = -1;
};

}  // namespace mobius::transport::ofi
