// SPDX-License-Identifier: BSD-3-Clause
#include "job/meeting/port_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "os/file/interfaces.h"
#include "os/file/tcp_socket.h"

namespace mobius::job {
namespace {

constexpr std::string_view kPortStart = "mobius-port-";
constexpr size_t kKeyDigits = 32;

bool parse_ip(const std::string& text, sockaddr_storage* address) {
  *address = {};
  if (inet_pton(AF_INET, text.c_str(), &reinterpret_cast<sockaddr_in*>(address)->sin_addr) == 1) {
    address->ss_family = AF_INET;
    return true;
  }
  if (inet_pton(AF_INET6, text.c_str(), &reinterpret_cast<sockaddr_in6*>(address)->sin6_addr) ==
      1) {
    address->ss_family = AF_INET6;
    return true;
  }
  return false;
}

bool is_named(const os::Interface& interface, const std::string& name) {
  os::Subnet subnet;
  if (os::parse_subnet(name, &subnet)) return subnet.contains(interface.address);
  return interface.name == name;
}

}  // namespace

std::string PortText::far_text(size_t most) const {
  if (addresses.empty()) return {};
  std::string text = "@" + std::to_string(os::port_of(addresses.front()));
  const size_t without = text.size();
  for (const sockaddr_storage& address : addresses) {
    const std::string ip = "," + os::ip_text(address);
    if (text.size() + ip.size() <= most) text += ip;
  }
  return text.size() > without ? text : std::string();
}

std::string PortText::text(size_t most) const {
  const std::string near = std::string(kPortStart) + to_hex(key);
  return near + far_text(most - near.size());
}

bool parse_far_text(std::string_view text, std::vector<sockaddr_storage>* addresses) {
  addresses->clear();
  if (text.empty()) return true;
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 1, end, port);
  if (text.front() != '@' || error != std::errc() || port == 0) return false;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  while (!text.empty()) {
    if (text.front() != ',') return false;
    text.remove_prefix(1);
    const std::string ip(text.substr(0, text.find(',')));
    sockaddr_storage address{};
    if (!parse_ip(ip, &address)) return false;
    os::set_port(&address, port);
    addresses->push_back(address);
    text.remove_prefix(ip.size());
  }
  return !addresses->empty();
}

bool parse_port_text(std::string_view text, PortText* port) {
  if (!text.starts_with(kPortStart)) return false;
  text.remove_prefix(kPortStart.size());
  const std::string_view key = text.substr(0, kKeyDigits);
  return from_hex(key, &port->key) && parse_far_text(text.substr(key.size()), &port->addresses);
}

std::vector<sockaddr_storage> own_addresses(uint16_t port, bool with_v6,
                                            const std::string& interface) {
  std::vector<os::Interface> all = os::host_interfaces();
  if (!interface.empty()) {
    std::erase_if(all, [&](const os::Interface& each) { return !is_named(each, interface); });
  }
  std::vector<sockaddr_storage> found;
  for (const os::Contact& contact : os::contacts(all)) {
    // A link-local address is good on one link only, which its text does not say.
    if (contact.is_link_local() || (contact.is_v6 != 0 && !with_v6)) continue;
    found.push_back(contact.address());
  }
  const auto loopback = std::ranges::find_if(all, [](const os::Interface& each) {
    return each.loopback && each.address.ss_family == AF_INET;
  });
  if (loopback != all.end()) found.push_back(loopback->address);
  for (sockaddr_storage& address : found) os::set_port(&address, port);
  return found;
}

}  // namespace mobius::job
