// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which of libfabric's providers carries a job, and over which interface of this host.

#include "transport/ofi/endpoint.h"
#include "transport/ofi/library.h"

namespace mobius::transport::ofi {

struct Choice {
  Info info;
  bool delivery_complete = false;  // FI_DELIVERY_COMPLETE is granted for RMA
};

// The best provider, or the one that options name, that does all we need, on the interface that
// options name, or the fastest. The errors are those of Endpoint::open().
mob_status_t choose(const Library& library, const Options& options, Choice* choice);

// "192.0.2.2:38473", "[fd00::2]:38473", or what libfabric makes of an address of its own kind.
std::string address_text(const Library& library, uint32_t format, const void* address,
                         size_t bytes);

}  // namespace mobius::transport::ofi
