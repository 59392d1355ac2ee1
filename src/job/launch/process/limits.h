// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How many processes this host allows, found out before the first is started.

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>

namespace mobius::launch {

struct Limit {
  uint64_t processes;
  std::string reason;  // what sets the limit and how to raise it
};

// The tightest limit on the processes of a job of `wanted`.
Limit process_limit(uint64_t wanted);

// The limit that the descriptors of this process set.
Limit descriptor_limit();

// Makes room in this process for a job's descriptors and `spare` others; returns the limit that was
// in force, which is the one for the ranks: programs that use select() depend on it. Empty if the
// system does not tell it.
std::optional<rlimit> raise_descriptor_limit(uint64_t processes, uint64_t spare);

}  // namespace mobius::launch
