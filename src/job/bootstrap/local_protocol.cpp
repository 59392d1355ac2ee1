// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/local_protocol.h"

#include <cstddef>
#include <cstring>
#include <string>

namespace mobius::job {

socklen_t socket_address(std::string_view key, sockaddr_un* address) {
  std::string name = "mobius-";
  name += key;
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());  // leading 0: abstract
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace mobius::job
