// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/common_networks.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace mobius::engine {
namespace {

using Names = std::vector<std::string>;

enum Kind : uint8_t { kAdapter, kLinkLocal = 1, kBridge = 2, kTunnel = 4 };

struct Address {
  const char* text;
  unsigned bits;
  Kind kind = kAdapter;
  long speed = 1000;
};

// As a host publishes it.
std::vector<os::Contact> host(std::initializer_list<Address> addresses) {
  std::vector<os::Interface> interfaces;
  for (const Address& each : addresses) {
    os::Interface& made = interfaces.emplace_back();
    os::Subnet parsed;
    EXPECT_TRUE(os::parse_subnet(each.text, &parsed));
    made.name = each.text;
    made.address = parsed.address;
    made.bits = each.bits;
    made.running = true;
    made.tunnel = each.kind == kTunnel;
    made.bridge = each.kind == kBridge;
    made.link_local = each.kind == kLinkLocal;
    made.speed = each.speed;
  }
  return os::contacts(interfaces);
}

Names tries(std::vector<std::vector<os::Contact>> hosts) { return networks_to_try(hosts); }

TEST(CommonNetworks, ForeignSubnetsOfSomeHostsAreNotUsed) {
  EXPECT_EQ(tries({host({{"10.8.0.2", 24, kTunnel, 10'000}, {"192.0.2.1", 24}}),
                   host({{"192.0.2.2", 24}})}),
            Names({"192.0.2.0/24"}));
  // Not even if they are faster, and on each host another one.
  EXPECT_EQ(tries({host({{"198.51.100.1", 24, kAdapter, 100'000}, {"192.0.2.1", 24}}),
                   host({{"203.0.113.1", 24, kAdapter, 100'000}, {"192.0.2.2", 24}}),
                   host({{"192.0.2.3", 24}})}),
            Names({"192.0.2.0/24"}));
}

TEST(CommonNetworks, SeveralAreTriedInTheOrderOfTheSlowestHost) {
  EXPECT_EQ(tries({host({{"192.0.2.1", 24, kAdapter, 40'000}, {"198.51.100.1", 24}}),
                   host({{"192.0.2.2", 24, kAdapter, 100}, {"198.51.100.2", 24}})}),
            Names({"198.51.100.0/24", "192.0.2.0/24"}));
  EXPECT_EQ(tries({host({{"10.8.0.1", 24, kTunnel, 40'000}, {"192.0.2.1", 24}}),
                   host({{"10.8.0.2", 24, kTunnel, 40'000}, {"192.0.2.2", 24}})}),
            Names({"192.0.2.0/24", "10.8.0.0/24"}));
}

TEST(CommonNetworks, SameAddressOnTwoHostsIsNoNetworkBetweenThem) {
  EXPECT_EQ(tries({host({{"172.17.0.1", 16, kBridge}, {"192.0.2.1", 24}}),
                   host({{"172.17.0.1", 16, kBridge}, {"192.0.2.2", 24}})}),
            Names({"192.0.2.0/24"}));
}

TEST(CommonNetworks, WithoutACommonOneEachHostTakesItsBest) {
  const auto routed = host({{"192.0.2.1", 24}});
  EXPECT_EQ(tries({routed, host({{"198.51.100.1", 24}})}), Names({""}));
  EXPECT_EQ(tries({routed, host({{"192.0.2.2", 25}})}), Names({""}));
  EXPECT_EQ(tries({routed, host({})}), Names({""}));
  EXPECT_EQ(tries({host({{"10.0.0.1", 32}}), host({{"10.0.0.2", 32}})}), Names({""}));
  EXPECT_EQ(
      tries({host({{"169.254.0.1", 16, kLinkLocal}}), host({{"169.254.0.2", 16, kLinkLocal}})}),
      Names({""}));
  EXPECT_EQ(tries({}), Names({""}));
}

TEST(CommonNetworks, ACommonTunnelIsTriedBeforeRoutes) {
  EXPECT_EQ(tries({host({{"10.8.0.1", 24, kTunnel}, {"192.0.2.1", 24}}),
                   host({{"10.8.0.2", 24, kTunnel}, {"198.51.100.1", 24}})}),
            Names({"10.8.0.0/24", ""}));
  EXPECT_EQ(tries({host({{"10.8.0.1", 24, kTunnel}}), host({{"10.8.0.2", 24, kTunnel}})}),
            Names({"10.8.0.0/24"}));
}

}  // namespace
}  // namespace mobius::engine
