// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// This host's interfaces: which address belongs to which, and which one a job should use.

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

namespace mobius::transport::ofi {

struct Interface {
  std::string name;
  sockaddr_storage address = {};
  bool loopback = false;
  bool link_local = false;  // fe80::/10, 169.254.0.0/16: valid on one link only
  bool bridge = false;      // of containers or virtual machines; seldom reaches another host
  bool running = false;     // has a carrier
  long speed = 0;           // Mbit/s, as the driver reports it; 0: unknown
};

// One entry per address of interfaces that are up.
std::vector<Interface> host_interfaces();

// "192.0.2.2", "fd00::2".
std::string ip_text(const sockaddr_storage& address);

// same_ip(): whether two addresses differ at most in their ports.
bool is_loopback(const sockaddr_storage& address);
bool same_ip(const sockaddr_storage& a, const sockaddr_storage& b);

// An address or subnet that a user named. parse_subnet() returns false if `text` is neither; it may
// be a name then.
struct Subnet {
  sockaddr_storage address = {};
  unsigned bits = 0;
  bool contains(const sockaddr_storage& other) const;
};
bool parse_subnet(std::string_view text, Subnet* subnet);

// Whether `a` suits a job better than `b`: it reaches other hosts, has IPv4, is faster.
bool better(const Interface& a, const Interface& b);

}  // namespace mobius::transport::ofi
