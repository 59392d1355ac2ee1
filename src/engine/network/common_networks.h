// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which networks all hosts of a job can use. A host may have others beside: a VPN, a bridge of
// containers, a second cable that leads elsewhere.

#include <span>
#include <string>
#include <vector>

#include "os/file/interfaces.h"

namespace mobius::engine {

// More are not tried.
inline constexpr size_t kMostNetworks = 4;

// The networks to try in this order, as subnets: those in which every host has an address of its
// own, without drawbacks first, then by the speed of the slowest host. "" stands for the interface
// that each host finds best by itself: the only choice where no network is common, and the last one
// where the common ones have drawbacks. Never empty. All hosts compute the same from the same.
std::vector<std::string> networks_to_try(std::span<const std::vector<os::Contact>> hosts);

}  // namespace mobius::engine
