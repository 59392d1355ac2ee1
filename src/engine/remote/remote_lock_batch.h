// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A claim (remote_locks.h) that carries operations of its thread, and perhaps the end of the
// access. The hosting process executes the operations once the claim is satisfied. It takes one
// request, and one answer when all is done.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request/batch_wire.h"

namespace mobius::engine {

enum class ClaimMode : uint32_t { kExclusive, kShared };
enum class ClaimAnswer : uint32_t { kNone, kAcquired, kRecovered, kHeld, kUnknown };

// A batch at the origin. Until the answer comes, the waiting thread keeps the operations.
struct RemoteLockBatch {
  struct Place {
    char* to;
    size_t bytes;
  };
  bool ends = false;  // the access ends after the operations
  BatchRequest request{};
  const unsigned char* pieces = nullptr;  // schedule/wire.h
  size_t piece_bytes = 0;
  std::vector<Place> places;  // destinations of the data read, in order
  // Outcome of the operations; they do not begin if the claim is not satisfied.
  mob_status_t status = MOB_OK;
  char text[512] = {};
};

// A batch at the process that hosts the lock.
struct RemoteLockBatchWork {
  BatchRequest request;
  bool ends;
  size_t piece_bytes;
  std::unique_ptr<unsigned char[]> pieces;
};

// Precedes the pieces. The batch request's id is the claim's ticket.
struct ClaimingRequest {
  BatchRequest pack;
  uint64_t object;
  uint64_t index;
  uint32_t thread;
  ClaimMode mode;
  uint32_t ends;
};

// Precedes the data read.
struct ClaimedReply {
  ClaimAnswer answer;
  BatchReply pack;

  static constexpr size_t bytes(mob_status_t status) {
    return offsetof(ClaimedReply, pack) + BatchReply::bytes(status);
  }
};

}  // namespace mobius::engine
