// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <tuple>

namespace mobius::os {
namespace {

// The bytes of an address in network order: 4, 16, or none.
std::string_view ip_bytes(const sockaddr_storage& address) {
  const auto* start = reinterpret_cast<const char*>(&address);
  if (address.ss_family == AF_INET) return {start + offsetof(sockaddr_in, sin_addr), 4};
  if (address.ss_family == AF_INET6) return {start + offsetof(sockaddr_in6, sin6_addr), 16};
  return {};
}

// The leading ones of a netmask; 0 if there is none.
unsigned bits_of(const sockaddr* mask, int family) {
  if (mask == nullptr) return 0;
  sockaddr_storage copy = {};
  std::memcpy(&copy, mask, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  copy.ss_family = static_cast<sa_family_t>(family);  // some kernels leave it 0 in a mask
  unsigned bits = 0;
  for (const char byte : ip_bytes(copy)) {
    const auto value = static_cast<unsigned char>(byte);
    bits += static_cast<unsigned>(std::countl_one(value));
    if (value != 0xff) break;
  }
  return bits;
}

// VPNs set up by the kernel (WireGuard, GRE) are point-to-point or have no link-layer addresses;
// those of programs are devices of the tun driver, which can look like Ethernet.
bool is_tunnel(const std::string& folder, unsigned flags) {
  if ((flags & (IFF_POINTOPOINT | IFF_NOARP)) != 0) return true;
  int type = ARPHRD_ETHER;
  std::ifstream(folder + "/type") >> type;
  return (type != ARPHRD_ETHER && type != ARPHRD_INFINIBAND) ||
         access((folder + "/tun_flags").c_str(), F_OK) == 0;
}

bool is_link_local(const sockaddr_storage& address) {
  const std::string_view bytes = ip_bytes(address);
  if (bytes.size() == 4) return bytes.starts_with("\xa9\xfe");
  if (bytes.size() == 16) return bytes[0] == '\xfe' && (bytes[1] & '\xc0') == '\x80';
  return false;
}

}  // namespace

std::vector<Interface> host_interfaces() {
  std::vector<Interface> interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface& interface = interfaces.emplace_back();
    interface.name = entry->ifa_name;
    std::memcpy(&interface.address, entry->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    interface.running = (entry->ifa_flags & IFF_RUNNING) != 0;
    interface.link_local = is_link_local(interface.address);
    interface.bits = bits_of(entry->ifa_netmask, family);
    const std::string folder = "/sys/class/net/" + interface.name;
    interface.bridge = access((folder + "/bridge").c_str(), F_OK) == 0;
    interface.tunnel = !interface.loopback && is_tunnel(folder, entry->ifa_flags);
    std::ifstream(folder + "/speed") >> interface.speed;
    if (interface.speed < 0) interface.speed = 0;
  }
  return interfaces;
}

std::string ip_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.ss_family, ip_bytes(address).data(), text, sizeof text);
  return text;
}

bool is_loopback(const sockaddr_storage& address) {
  const std::string_view ip = ip_bytes(address);
  if (address.ss_family == AF_INET) return !ip.empty() && ip.front() == IN_LOOPBACKNET;
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool same_ip(const sockaddr_storage& a, const sockaddr_storage& b) {
  return a.ss_family == b.ss_family && !ip_bytes(a).empty() && ip_bytes(a) == ip_bytes(b);
}

bool Subnet::contains(const sockaddr_storage& other) const {
  const std::string_view mine = ip_bytes(address);
  const std::string_view theirs = ip_bytes(other);
  if (mine.empty() || mine.size() != theirs.size()) return false;
  for (unsigned bit = 0; bit < bits; ++bit) {
    if (((mine[bit / 8] ^ theirs[bit / 8]) & (0x80 >> bit % 8)) != 0) return false;
  }
  return true;
}

bool parse_subnet(std::string_view text, Subnet* subnet) {
  const size_t slash = text.find('/');
  const std::string ip(text.substr(0, slash));
  Subnet parsed;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&parsed.address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&parsed.address);
  if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) {
    parsed.address.ss_family = AF_INET;
    parsed.bits = 32;
  } else if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) {
    parsed.address.ss_family = AF_INET6;
    parsed.bits = 128;
  } else {
    return false;
  }
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const unsigned most = parsed.bits;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), parsed.bits);
    if (error != std::errc() || end != digits.data() + digits.size() || parsed.bits > most) {
      return false;
    }
  }
  *subnet = parsed;
  return true;
}

std::string Subnet::text() const {
  sockaddr_storage first = address;
  auto* bytes = const_cast<char*>(ip_bytes(first).data());
  for (unsigned bit = bits; bit < 8 * ip_bytes(address).size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] & ~(0x80 >> bit % 8));
  }
  return ip_text(first) + "/" + std::to_string(bits);
}

namespace {

uint8_t drawbacks_of(const Interface& interface) {
  return static_cast<uint8_t>(kTunnel * interface.tunnel + kBridge * interface.bridge +
                              kLinkLocal * interface.link_local);
}

}  // namespace

bool better(const Interface& a, const Interface& b) {
  const auto rank = [](const Interface& interface) {
    return std::make_tuple(interface.running, !interface.loopback, -drawbacks_of(interface),
                           interface.speed, interface.address.ss_family == AF_INET);
  };
  return rank(a) > rank(b);
}

const char* drawback(const Interface& interface) {
  if (!interface.running) return "it has no carrier";
  if (interface.loopback) return "it is the loopback";
  if (interface.tunnel) return "it is a tunnel, a point-to-point link or no adapter";
  if (interface.bridge) return "it is a bridge of containers or virtual machines";
  if (interface.link_local) return "its address is valid on one link only";
  return nullptr;
}

sockaddr_storage Contact::address() const {
  sockaddr_storage result = {};
  result.ss_family = is_v6 != 0 ? AF_INET6 : AF_INET;
  std::memcpy(const_cast<char*>(ip_bytes(result).data()), ip, is_v6 != 0 ? 16 : 4);
  return result;
}

Subnet Contact::subnet() const {
  Subnet result;
  result.address = address();
  result.bits = std::min<unsigned>(bits, is_v6 != 0 ? 128 : 32);
  return result;
}

std::vector<Contact> contacts(std::span<const Interface> interfaces) {
  std::vector<const Interface*> usable;
  for (const Interface& each : interfaces) {
    const bool has_v4 = std::ranges::any_of(interfaces, [&](const Interface& other) {
      return other.name == each.name && other.address.ss_family == AF_INET;
    });
    if (each.running && !each.loopback && !(has_v4 && each.address.ss_family == AF_INET6)) {
      usable.push_back(&each);
    }
  }
  // Of equals the first, as the kernel lists them.
  std::ranges::sort(usable, [](const Interface* a, const Interface* b) {
    return better(*a, *b) || (!better(*b, *a) && a < b);
  });
  std::vector<Contact> result;
  for (const Interface* each : usable) {
    if (result.size() == kMostContacts) break;
    Contact& contact = result.emplace_back();
    contact = {};
    const std::string_view ip = ip_bytes(each->address);
    std::memcpy(contact.ip, ip.data(), ip.size());
    contact.speed = static_cast<uint32_t>(each->speed);
    contact.is_v6 = ip.size() == 16 ? 1 : 0;
    contact.bits = static_cast<uint8_t>(each->bits);
    contact.drawbacks = drawbacks_of(*each);
  }
  return result;
}

}  // namespace mobius::os
