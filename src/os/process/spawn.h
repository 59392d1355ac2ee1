// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Starting one process.

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <span>

namespace mobius::os {

// What a process inherits.
struct SpawnArguments {
  const char* path;
  char* const* arguments;
  char* const* environment;
  const char* folder;  // to start in; null: as the caller's
  int input;
  int output;
  int error_output;
  const cpu_set_t* processors;  // null: as the caller's
  size_t processors_bytes;
  const sigset_t* signal_mask;
  const rlimit* descriptor_limit;  // null: as the caller's
  bool own_group;
  std::span<const int> descriptors;  // to keep open under their numbers
};

struct Spawned {
  pid_t pid = -1;
  int error = 0;               // errno; 0 when the program was started
  const char* step = nullptr;  // what failed
};

// Starts the program, in a process group of its own or in the caller's. The kernel kills it when
// the caller ends. The caller is suspended until the program has been executed or has failed to be.
Spawned spawn(const SpawnArguments& request);

}  // namespace mobius::os
