// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/local_protocol.h"

#include <unistd.h>

#include <string>

#include "base/status.h"

namespace mobius::job {

socklen_t job_address(const Secret& secret, sockaddr_un* address, unsigned attempt) {
  const auto name = derive(secret, "address " + std::to_string(attempt));
  return os::abstract_address("mobius-" + to_hex(name), address);
}

mob_status_t connect_to_job(const Secret& secret, os::UnixSocket* connection, Nonce* challenge) {
  sockaddr_un address{};
  const socklen_t length = job_address(secret, &address);
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
