// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// This host's network interfaces: which address belongs to which, and which one a job of several
// hosts should use.

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mobius::os {

struct Interface {
  std::string name;
  sockaddr_storage address = {};
  unsigned bits = 0;  // of the address, those that name the subnet
  bool loopback = false;
  bool link_local = false;  // fe80::/10, 169.254.0.0/16: valid on one link only
  bool bridge = false;      // of containers or virtual machines; seldom reaches another host
  bool tunnel = false;      // point-to-point, a VPN, or no adapter at all
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
  std::string text() const;  // "192.0.2.0/24"
};
bool parse_subnet(std::string_view text, Subnet* subnet);

// Whether `a` suits a job better than `b`: it has a carrier, is no loopback, no tunnel, no bridge
// and not link-local, is faster, has IPv4.
bool better(const Interface& a, const Interface& b);

// Why an interface is used only where no other one is: "a tunnel or a point-to-point link". Null if
// nothing speaks against it.
const char* drawback(const Interface& interface);

enum Drawback : uint8_t { kLinkLocal = 1, kBridge = 2, kTunnel = 4 };

// An address at which other hosts may reach this one, as it is told to them. No padding, so that it
// can be sent as it is.
struct Contact {
  uint8_t ip[16];  // IPv4: the first 4
  uint32_t speed;  // as in Interface
  uint8_t is_v6;
  uint8_t bits;       // of the subnet
  uint8_t drawbacks;  // bits of Drawback; of two addresses the one with the greater value is worse
  uint8_t reserved;
  sockaddr_storage address() const;
  Subnet subnet() const;
  bool is_link_local() const { return (drawbacks & kLinkLocal) != 0; }
};
static_assert(sizeof(Contact) == 24);

// The best ones first, at most kMostContacts: those with a carrier that are no loopback. IPv6 only
// where an interface has no IPv4.
inline constexpr size_t kMostContacts = 16;
std::vector<Contact> contacts(std::span<const Interface> interfaces);

}  // namespace mobius::os
