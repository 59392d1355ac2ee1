// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What scheduler.h sends to packs.h and gets back, around the pieces (schedule/wire.h).

#include <mobius/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mobius::engine {

struct BatchRequest {
  uint64_t id;            // of the origin, for the reply
  uint64_t lowest;        // puts and gets lie between this
  uint64_t highest;       // … and this: of one piece of memory, mostly
  uint64_t answer_bytes;  // of all gets and fetches
};

// After it, whatever the status, what was read, in the order of the pieces.
struct BatchReply {
  uint64_t id = 0;
  mob_status_t status = MOB_OK;
  char text[256];  // only after an error

  static constexpr size_t bytes(mob_status_t status) {
    return status == MOB_OK ? offsetof(BatchReply, text) : sizeof(BatchReply);
  }

  // What came, of which a text may be missing.
  static BatchReply from(const void* bytes, size_t count) {
    BatchReply reply;
    std::memcpy(&reply, bytes, std::min(count, sizeof reply));
    reply.text[count < sizeof reply ? 0 : sizeof reply.text - 1] = 0;
    return reply;
  }

  // Takes in mob_last_error().
  void refuse(mob_status_t why) {
    status = why;
    std::strncpy(text, mob_last_error(), sizeof text - 1);
    text[sizeof text - 1] = 0;
  }
};

}  // namespace mobius::engine
