// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How much memory this process can still allocate, by the host and by the limits of its control
// groups, versions 1 and 2, also from inside a container. Limits that cannot be read are unknown,
// which is not zero: they do not count.

#include <cstdint>
#include <string>

namespace mobius::os {

// A control group that limits memory.
struct GroupLimit {
  std::string folder;                 // of the group, in the file system of control groups
  uint64_t limit_bytes = UINT64_MAX;  // of the group; UINT64_MAX: no limit
  uint64_t room_bytes = UINT64_MAX;  // what the group still allows, page cache that can go included
};

// The group, of this process' own and those above it, that allows least; no limit if none does, or
// if the groups cannot be read. `root` stands before every path that is read, for tests.
GroupLimit tightest_group(const std::string& root = "");

struct AvailableMemory {
  uint64_t bytes = UINT64_MAX;
  // Why it is not more, as the end of a sentence, such as "by the limit of 200 MiB of the control
  // group /sys/fs/cgroup/job"; empty if the host's memory is what limits it.
  std::string limited_by;
};

// The least of the host's available memory and what the control groups allow. Where the host's
// available memory is unknown (no /proc, no descriptor left), all of its memory counts.
AvailableMemory available_memory(const std::string& root = "");

}  // namespace mobius::os
