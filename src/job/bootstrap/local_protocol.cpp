// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/local_protocol.h"

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "base/status.h"

namespace mobius::job {

socklen_t socket_address(const Secret& secret, sockaddr_un* address, unsigned attempt) {
  const std::string name = "mobius-" + to_hex(derive(secret, "address " + std::to_string(attempt)));
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());  // leading 0: abstract
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

mob_status_t connect_to_job(const Secret& secret, os::UnixSocket* connection, Nonce* challenge) {
  sockaddr_un address{};
  const socklen_t length = socket_address(secret, &address);
  mob_status_t status = connection->connect(address, length);
  Message message;
  int unasked = -1;
  if (status == MOB_OK) status = connection->receive(&message, sizeof message, &unasked);
  if (unasked >= 0) close(unasked);
  if (status != MOB_OK) return status;
  if (message.magic != kProtocolMagic || message.version != kProtocolVersion ||
      message.type != MessageType::kChallenge) {
    connection->close();
    return base::fail(
        MOB_ERR_SYSTEM,
        "another version of the protocol is spoken there; use the `mobius` command that "
        "came with this library");
  }
  *challenge = message.nonce;
  return MOB_OK;
}

}  // namespace mobius::job
