// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "job/local_protocol.h"
#include "os/unix_socket.h"

namespace mobius::os {
namespace {

std::string unused_key() {
  std::string key = std::to_string(getpid());
  return std::string(job::kKeyDigits - key.size(), 'e') + key;
}

TEST(UnixSocket, ConnectingToNobodySaysSo) {
  sockaddr_un address{};
  const socklen_t length = job::socket_address(unused_key(), -1, &address);
  UnixSocket socket;
  EXPECT_EQ(socket.connect(address, length), MOB_ERR_SYSTEM);
  EXPECT_NE(std::string(mob_last_error()).find("Connection refused"), std::string::npos);
  EXPECT_FALSE(socket.is_open());
}

TEST(UnixSocket, AddressesOfRanksDiffer) {
  sockaddr_un a{};
  sockaddr_un b{};
  const std::string key = unused_key();
  const socklen_t la = job::socket_address(key, 1, &a);
  const socklen_t lb = job::socket_address(key, 11, &b);
  EXPECT_EQ(la + 1, lb);
  UnixSocket first;
  UnixSocket second;
  UnixSocket third;
  EXPECT_EQ(first.bind_datagram(a, la), MOB_OK);
  EXPECT_EQ(second.bind_datagram(b, lb), MOB_OK);
  EXPECT_EQ(third.bind_datagram(a, la), MOB_ERR_SYSTEM);  // taken
}

TEST(UnixSocket, DatagramsOfAnotherSizeAreDropped) {
  sockaddr_un address{};
  const socklen_t length = job::socket_address(unused_key(), 2, &address);
  UnixSocket receiver;
  ASSERT_EQ(receiver.bind_datagram(address, length), MOB_OK);
  UnixSocket sender;
  sockaddr_un own{};
  ASSERT_EQ(sender.bind_datagram(own, job::socket_address(unused_key(), 3, &own)), MOB_OK);
  const char text[] = "exactly this";
  ASSERT_EQ(sender.send_to(address, length, text, 3, -1), MOB_OK);
  ASSERT_EQ(sender.send_to(address, length, std::string(100, 'x').data(), 100, 0), MOB_OK);
  ASSERT_EQ(sender.send_to(address, length, text, sizeof text, -1), MOB_OK);
  char got[sizeof text] = {};
  int descriptor = 0;
  ASSERT_EQ(receiver.receive(got, sizeof got, &descriptor), MOB_OK);
  EXPECT_STREQ(got, text);
  EXPECT_EQ(descriptor, -1);
}

}  // namespace
}  // namespace mobius::os
