// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Chooses libfabric's provider for a job, and the interface of this host.

#include "transport/ofi/endpoint.h"
#include "transport/ofi/library.h"

namespace mobius::transport::ofi {

struct Choice {
  Info info;
  bool delivery_complete = false;  // FI_DELIVERY_COMPLETE is granted for remote memory access
};

// Chooses the best provider that does all we need, or the one that the options name, on the fastest
// interface or the one that the options name. The errors are those of Endpoint::open().
mob_status_t choose(const Library& library, const Options& options, Choice* choice);

// "192.0.2.2:38473", "[fd00::2]:38473", or libfabric's text for other kinds of address.
std::string address_text(const Library& library, uint32_t format, const void* address,
                         size_t bytes);

}  // namespace mobius::transport::ofi
