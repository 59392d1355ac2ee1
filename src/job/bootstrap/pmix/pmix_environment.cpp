// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include "job/bootstrap/pmix/pmix.h"

namespace mobius::job::pmix {

// The name of the variable with the server's address depends on the version of the protocol.
bool started_us(const char* const* environment) {
  bool has_namespace = false;
  bool has_rank = false;
  bool has_server = false;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    has_namespace = has_namespace || entry.starts_with("PMIX_NAMESPACE=");
    has_rank = has_rank || entry.starts_with("PMIX_RANK=");
    has_server = has_server || entry.starts_with("PMIX_SERVER_URI");
  }
  return has_namespace && has_rank && has_server;
}

}  // namespace mobius::job::pmix
