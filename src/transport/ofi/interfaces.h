// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// This host's interfaces: which address belongs to which, and which of them a job should use.

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
  bool bridge = false;      // of containers and virtual machines: seldom reaches another host
  bool running = false;     // has a carrier
  long speed = 0;           // Mbit/s, as the driver says; 0: it does not
};

// One entry per address of interfaces that are up.
std::vector<Interface> host_interfaces();

// "192.0.2.2", "fd00::2".
std::string ip_text(const sockaddr_storage& address);

// Whether two addresses are the same but for their ports.
bool is_loopback(const sockaddr_storage& address);
bool same_ip(const sockaddr_storage& a, const sockaddr_storage& b);

// What a user named: an address or a subnet. False if `text` is neither; it may be a name then.
struct Subnet {
  sockaddr_storage address = {};
  unsigned bits = 0;
  bool contains(const sockaddr_storage& other) const;
};
bool parse_subnet(std::string_view text, Subnet* subnet);

// Whether `a` serves a job better than `b`: another host can be reached, IPv4, speed.
bool better(const Interface& a, const Interface& b);

}  // namespace mobius::transport::ofi
