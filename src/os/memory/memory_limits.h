// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The memory that this process can still allocate, by the host and by the limits of its control
// groups, versions 1 and 2, also from inside a container. A limit that cannot be read is unknown,
// not zero: it is ignored.

#include <cstdint>
#include <string>

namespace mobius::os {

// A control group that limits memory.
struct GroupLimit {
  std::string folder;                 // of the group, in the file system of control groups
  uint64_t limit_bytes = UINT64_MAX;  // of the group; UINT64_MAX: no limit
  // Room that the group still allows, including page cache that can be dropped.
  uint64_t room_bytes = UINT64_MAX;
};

// The group with the least room, of this process's own and those above it; no limit if none has
// one, or if the groups cannot be read. `root` is put before every path that is read, for tests.
GroupLimit tightest_group(const std::string& root = "");

struct AvailableMemory {
  uint64_t bytes = UINT64_MAX;
  // The limiting factor, as the end of a sentence, such as "by the limit of 200 MiB of the control
  // group /sys/fs/cgroup/job"; empty if that is the host's memory.
  std::string limited_by;
};

// The least of the host's available memory and the room of the control groups. If the host's
// available memory is unknown (no /proc, no descriptor left), all of its memory counts.
AvailableMemory available_memory(const std::string& root = "");

// Which limit of this process makes mmap() fail with `error`, as the end of a sentence: "raise the
// limit on its address space (ulimit -v), 1000 MiB".
std::string mapping_limit(int error);

}  // namespace mobius::os
