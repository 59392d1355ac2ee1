// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "job/bootstrap/local_protocol.h"
#include "os/unix_socket.h"

namespace mobius::os {
namespace {

std::string unused_key() {
  std::string key = std::to_string(getpid());
  return std::string(job::kKeyDigits - key.size(), 'e') + key;
}

TEST(UnixSocket, ConnectingToNobodySaysSo) {
  sockaddr_un address{};
  const socklen_t length = job::socket_address(unused_key(), &address);
  UnixSocket socket;
  EXPECT_EQ(socket.connect(address, length), MOB_ERR_SYSTEM);
  EXPECT_NE(std::string(mob_last_error()).find("Connection refused"), std::string::npos);
  EXPECT_FALSE(socket.is_open());
}

}  // namespace
}  // namespace mobius::os
