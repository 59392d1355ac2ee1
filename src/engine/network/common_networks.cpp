// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/common_networks.h"

#include <algorithm>
#include <tuple>

namespace mobius::engine {
namespace {

using os::Contact;

struct Common {
  std::string subnet;
  uint8_t drawbacks = 0;
  uint32_t speed = 0;
  size_t order = 0;  // in the list of the first host
};

bool same_subnet(const Contact& a, const Contact& b) {
  return a.bits == b.bits && a.is_v6 == b.is_v6 && a.subnet().contains(b.address());
}

// Bridges of containers mostly have the same address on every host: such a subnet is common by its
// number alone.
bool find_common(const Contact& first, std::span<const std::vector<Contact>> others,
                 Common* common) {
  *common = {first.subnet().text(), first.drawbacks, first.speed, 0};
  std::vector<sockaddr_storage> addresses = {first.address()};
  for (const std::vector<Contact>& host : others) {
    const auto found =
        std::ranges::find_if(host, [&](const Contact& each) { return same_subnet(first, each); });
    if (found == host.end()) return false;
    const sockaddr_storage address = found->address();
    for (const sockaddr_storage& other : addresses) {
      if (os::same_ip(address, other)) return false;
    }
    addresses.push_back(address);
    common->drawbacks = std::max(common->drawbacks, found->drawbacks);
    common->speed = std::min(common->speed, found->speed);
  }
  return true;
}

}  // namespace

std::vector<std::string> networks_to_try(std::span<const std::vector<Contact>> hosts) {
  std::vector<Common> found;
  for (const Contact& contact : hosts.empty() ? std::vector<Contact>() : hosts.front()) {
    Common common;
    if (!contact.is_link_local() && find_common(contact, hosts.subspan(1), &common)) {
      common.order = found.size();
      found.push_back(common);
    }
  }
  std::ranges::sort(found, [](const Common& a, const Common& b) {
    return std::make_tuple(a.drawbacks, b.speed, a.order) <
           std::make_tuple(b.drawbacks, a.speed, b.order);
  });
  std::vector<std::string> networks;
  for (const Common& common : found) {
    if (networks.size() < kMostNetworks) networks.push_back(common.subnet);
  }
  const bool has_good = !found.empty() && found.front().drawbacks == 0;
  const bool may_route = std::ranges::all_of(hosts, [](const std::vector<Contact>& host) {
    return !host.empty() && host.front().drawbacks == 0;
  });
  if (networks.empty() || (!has_good && may_route)) networks.emplace_back();
  return networks;
}

}  // namespace mobius::engine
