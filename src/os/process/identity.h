// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The facts that decide with which processes a process can share memory. Two processes with the
// same identity may be able to share memory; only an attempt shows whether they are (sandboxes may
// forbid it).

#include <cstdint>

namespace mobius::os {

struct Identity {
  unsigned char boot[16];      // the running kernel, by its boot id
  uint64_t user_namespace;     // defines the meaning of user ids
  uint64_t network_namespace;  // defines which abstract Unix sockets can be reached
  uint64_t user;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// A fact that cannot be determined (no /proc) is 0.
Identity own_identity();

}  // namespace mobius::os
