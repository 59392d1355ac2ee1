// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/interfaces.h"

#include <gtest/gtest.h>

namespace mobius::os {
namespace {

sockaddr_storage ip(const char* text) {
  Subnet subnet;
  EXPECT_TRUE(parse_subnet(text, &subnet)) << text;
  return subnet.address;
}

TEST(Interfaces, SubnetsAreParsedAndContainTheirAddresses) {
  Subnet subnet;
  ASSERT_TRUE(parse_subnet("10.1.2.0/23", &subnet));
  EXPECT_TRUE(subnet.contains(ip("10.1.3.255")));
  EXPECT_FALSE(subnet.contains(ip("10.1.4.0")));
  EXPECT_FALSE(subnet.contains(ip("fd00::1")));
  ASSERT_TRUE(parse_subnet("10.1.2.9", &subnet));
  EXPECT_TRUE(subnet.contains(ip("10.1.2.9")));
  EXPECT_FALSE(subnet.contains(ip("10.1.2.8")));
  ASSERT_TRUE(parse_subnet("fd00:1::/32", &subnet));
  EXPECT_TRUE(subnet.contains(ip("fd00:1:2::3")));
  EXPECT_FALSE(subnet.contains(ip("fd00:2::3")));
  ASSERT_TRUE(parse_subnet("0.0.0.0/0", &subnet));
  EXPECT_TRUE(subnet.contains(ip("8.8.8.8")));
  for (const char* bad : {"", "eth0", "10.1.2", "10.1.2.3/33", "10.1.2.3/", "10.1.2.3/x", "/24",
                          "fd00::/129", "10.1.2.3/-1", "10.1.2.3/8 "}) {
    EXPECT_FALSE(parse_subnet(bad, &subnet)) << bad;
  }
}

TEST(Interfaces, HostsAreBetterReachedByFastInterfacesThanByBridgesOrLoopbacks) {
  const auto make = [](const char* text, long speed) {
    Interface made;
    made.address = ip(text);
    made.running = true;
    made.speed = speed;
    return made;
  };
  const Interface slow = make("10.0.0.1", 1000);
  const Interface fast = make("10.0.1.1", 100'000);
  const Interface fast_v6 = make("fd00::1", 100'000);
  Interface bridge = make("172.17.0.1", 200'000);
  bridge.bridge = true;
  Interface loopback = make("127.0.0.1", 0);
  loopback.loopback = true;
  Interface down = make("10.0.2.1", 200'000);
  down.running = false;
  EXPECT_TRUE(better(fast, slow));
  EXPECT_TRUE(better(fast, fast_v6));
  EXPECT_TRUE(better(slow, bridge));
  EXPECT_TRUE(better(bridge, loopback));
  Interface tunnel = make("10.8.0.1", 400'000);
  tunnel.tunnel = true;
  Interface link_local = make("169.254.3.1", 300'000);
  link_local.link_local = true;
  EXPECT_TRUE(better(slow, tunnel));
  EXPECT_TRUE(better(slow, link_local));
  EXPECT_TRUE(better(bridge, tunnel));
  EXPECT_TRUE(better(tunnel, loopback));
  for (const Interface* bad : {&bridge, &loopback, &down, &tunnel, &link_local}) {
    EXPECT_NE(drawback(*bad), nullptr);
  }
  EXPECT_EQ(drawback(slow), nullptr);
  EXPECT_TRUE(better(slow, down));
  EXPECT_FALSE(better(slow, slow));
}

TEST(Interfaces, LoopbackIsAmongThoseOfThisHost) {
  bool found = false;
  for (const Interface& interface : host_interfaces()) {
    found = found || (interface.loopback && same_ip(interface.address, ip("127.0.0.1")));
  }
  EXPECT_TRUE(found);
}

TEST(Interfaces, ContactsAreThoseThatMayReachOtherHostsBestFirst) {
  const auto make = [](const char* name, const char* text, unsigned bits, long speed) {
    Interface made;
    made.name = name;
    made.address = ip(text);
    made.bits = bits;
    made.running = true;
    made.speed = speed;
    return made;
  };
  std::vector<Interface> all = {
      make("lo", "127.0.0.1", 8, 0),       make("tun0", "10.8.0.6", 32, 10'000),
      make("eth0", "fd00::5", 64, 1000),   make("eth0", "192.0.2.5", 24, 1000),
      make("eth1", "fd01::5", 64, 10'000), make("eth2", "198.51.100.5", 24, 100'000),
  };
  all[0].loopback = true;
  all[1].tunnel = true;
  all[5].running = false;
  const std::vector<Contact> found = contacts(all);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].subnet().text(), "fd01::/64");
  EXPECT_EQ(found[1].subnet().text(), "192.0.2.0/24");
  EXPECT_EQ(ip_text(found[1].address()), "192.0.2.5");
  EXPECT_EQ(found[1].drawbacks, 0);
  EXPECT_EQ(found[2].subnet().text(), "10.8.0.6/32");
  EXPECT_NE(found[2].drawbacks, 0);
  EXPECT_EQ(contacts(std::vector<Interface>(40, all[3])).size(), kMostContacts);
}

}  // namespace
}  // namespace mobius::os
