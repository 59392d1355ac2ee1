// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What scheduler.h sends to packs.h and gets back, around the pieces (schedule/wire.h).

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

namespace mobius::engine {

struct PackRequest {
  uint64_t id;            // of the origin, for the reply
  uint64_t lowest;        // puts and gets lie between this
  uint64_t highest;       // … and this: of one piece of memory, mostly
  uint64_t answer_bytes;  // of all gets and fetches
};

// After it, whatever the status, what was read, in the order of the pieces.
struct PackReply {
  uint64_t id;
  mob_status_t status;
  char text[256];  // only after an error

  static constexpr size_t bytes(mob_status_t status) {
    return status == MOB_OK ? offsetof(PackReply, text) : sizeof(PackReply);
  }
};

}  // namespace mobius::engine
