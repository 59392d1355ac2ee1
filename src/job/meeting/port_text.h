// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a process needs to know of a port, and its text, which users pass on:
//
//   mobius-port-<key>                                  reached from its host alone
//   mobius-port-<key>@<port>,<address>,<address>…      also by TCP; the best address comes first

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/bootstrap/proof.h"

namespace mobius::job {

// The longest text, with the zero at its end.
inline constexpr size_t kPortTextBytes = 256;

struct PortText {
  Secret key{};
  std::vector<sockaddr_storage> addresses;  // each with the port

  bool is_far() const { return !addresses.empty(); }
  // Addresses that have no room in `most` bytes are left out.
  std::string text(size_t most = kPortTextBytes - 1) const;
  // What follows the key; empty if there are no addresses.
  std::string far_text(size_t most) const;
};

// False if the text is not one of a port: it may be a name.
bool parse_port_text(std::string_view text, PortText* port);
// Reads the part that follows the key.
bool parse_far_text(std::string_view text, std::vector<sockaddr_storage>* addresses);

// The addresses of this host at which a listener is reached, the best first, loopback last.
// `interface`: use this one alone, by its name, address or subnet; empty: all.
std::vector<sockaddr_storage> own_addresses(uint16_t port, bool with_v6,
                                            const std::string& interface);

}  // namespace mobius::job
