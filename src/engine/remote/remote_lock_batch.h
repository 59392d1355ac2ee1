// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A claim (remote_locks.h) that brings operations of its thread, which are carried out once it is
// satisfied, and perhaps the end of the access: one message, and one answer when all is done.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request/batch_wire.h"

namespace mobius::engine {

enum class ClaimMode : uint32_t { kExclusive, kShared };
enum class ClaimAnswer : uint32_t { kNone, kAcquired, kRecovered, kHeld, kUnknown };

// At the origin. Until the answer has come the operations are whoever waits for it has them.
struct RemoteLockBatch {
  struct Place {
    char* to;
    size_t bytes;
  };
  bool ends = false;  // the access, with them
  BatchRequest request{};
  const unsigned char* pieces = nullptr;  // schedule/wire.h
  size_t piece_bytes = 0;
  std::vector<Place> places;  // of what is read, in order
  // How the operations went; those of a claim that was not satisfied did not begin.
  mob_status_t status = MOB_OK;
  char text[512] = {};
};

// At the process that hosts the lock.
struct RemoteLockBatchWork {
  BatchRequest request;
  bool ends;
  size_t piece_bytes;
  std::unique_ptr<unsigned char[]> pieces;
};

// In front of the pieces. The pack's id is the claim's ticket.
struct ClaimingRequest {
  BatchRequest pack;
  uint64_t object;
  uint64_t index;
  uint32_t thread;
  ClaimMode mode;
  uint32_t ends;
};

// In front of what was read.
struct ClaimedReply {
  ClaimAnswer answer;
  BatchReply pack;

  static constexpr size_t bytes(mob_status_t status) {
    return offsetof(ClaimedReply, pack) + BatchReply::bytes(status);
  }
};

}  // namespace mobius::engine
