// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "os/file/held_descriptor.h"

namespace mobius::os {

// Whether the numbers in /proc are those of this process' namespace of process ids. They are not
// after `unshare --pid --fork` without --mount-proc. Then only /proc/self may be looked at.
bool proc_is_ours();

// The time when a process started, in clock ticks since the host started. 0 if the process does not
// exist (any more) or cannot be examined; errno tells which (ENOTSUP: /proc is not ours). Pid and
// start time together identify a process for good.
uint64_t process_start_time(pid_t pid);

// The parent of a process; 0 if it has none that this process can see.
pid_t process_parent(pid_t pid);

// Whether all threads of a process are ending, and the parent cannot reap it yet. False if the
// process cannot be examined.
bool process_is_ending(pid_t pid);

// The environment with which a process was started: "NAME=value" entries, each followed by a 0
// byte. Empty if the process belongs to another user or is gone.
std::string process_environment(pid_t pid);

// Bytes that differ from process to process and that only processes of the same user can read: the
// addresses at which the kernel placed its parts. Empty if they cannot be read.
std::string process_private_bytes(pid_t pid);

// Whether a line of a file /proc/PID/maps is that of a mapping of this file.
bool is_mapping_of(const char* line, const struct stat& file);

// Whether a process has a file mapped; nothing if its mappings cannot be read.
std::optional<bool> has_mapped(pid_t pid, int file);

// The facts that decide whether another process may attach to this one, and this one to others.
struct Credentials {
  uid_t user = 0;
  gid_t group = 0;
  bool is_dumpable = true;  // also false after a change of user

  static Credentials own();
  bool operator==(const Credentials&) const = default;
};

// Watches a process through a pidfd, so that a later process with the same pid is not taken for it.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Whether the process `pid` that started at `start_time` has ended. The first call opens the
  // pidfd; on kernels without pidfds (before 5.3) the start time alone decides. If the check is
  // impossible, for example for lack of descriptors, the process counts as alive. Allocates
  // nothing. Not thread-safe.
  bool has_ended(pid_t pid, uint64_t start_time);

  void close() { descriptor_.close(); }

 private:
  bool is_ours() const;

  HeldDescriptor descriptor_;
};

}  // namespace mobius::os
