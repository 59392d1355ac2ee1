// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Where a process runs, as far as it decides with whom it can share memory. Two processes with the
// same identity may be able to; whether they are only an attempt tells (sandboxes may forbid it).

#include <cstdint>

namespace mobius::os {

struct Identity {
  unsigned char boot[16];      // the running kernel, by its boot id
  uint64_t user_namespace;     // what user ids mean
  uint64_t network_namespace;  // who can reach whose abstract Unix sockets
  uint64_t user;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// What cannot be found out (no /proc) is 0.
Identity own_identity();

}  // namespace mobius::os
