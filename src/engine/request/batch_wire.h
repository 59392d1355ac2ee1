// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Header of the messages between Scheduler and BatchServer, around the pieces (schedule/wire.h).

#include <mobius/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace mobius::engine {

// Most bytes of a batch, and of the data of its answer: far more than any sender collects.
inline constexpr size_t kMostBatchBytes = size_t{1} << 24;

// Memory for a batch or an answer that has yet to come; null if a process that announces as much
// must be malicious, or there is no memory.
inline std::unique_ptr<unsigned char[]> make_batch_buffer(size_t bytes) {
  return std::unique_ptr<unsigned char[]>(
      bytes <= kMostBatchBytes ? new (std::nothrow) unsigned char[bytes] : nullptr);
}

struct BatchRequest {
  uint64_t id;            // the origin's number, returned in the reply
  uint64_t lowest;        // puts and gets lie in the range from here …
  uint64_t highest;       // … to here: mostly within one region
  uint64_t answer_bytes;  // of all gets and fetches
};

// Followed by the data read, in the order of the pieces, whatever the status.
struct BatchReply {
  uint64_t id = 0;
  mob_status_t status = MOB_OK;
  char text[256];  // only after an error

  static constexpr size_t bytes(mob_status_t status) {
    return status == MOB_OK ? offsetof(BatchReply, text) : sizeof(BatchReply);
  }

  // A reply as received; the text may be missing.
  static BatchReply from(const void* bytes, size_t count) {
    BatchReply reply;
    std::memcpy(&reply, bytes, std::min(count, sizeof reply));
    reply.text[count < sizeof reply ? 0 : sizeof reply.text - 1] = 0;
    return reply;
  }

  // Copies the text of mob_last_error().
  void refuse(mob_status_t why) {
    status = why;
    std::strncpy(text, mob_last_error(), sizeof text - 1);
    text[sizeof text - 1] = 0;
  }
};

}  // namespace mobius::engine
