// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the two sides of served transfers say to each other, for served.cpp and served_target.cpp
// alone.

#include <mobius/message.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/request/rkeys.h"
#include "engine/request/am_rma.h"

namespace mobius::engine {

// Stages are not larger than this: a long transfer is packed and carried out at the same time.
inline constexpr size_t kStageBytes = size_t{1} << 20;
// Nor have they more spans.
inline constexpr size_t kMostSpansSent = kStageBytes / 64;

// In Request::stage: there is none, and the payload has what it would hold, or lists what the
// target is to move itself, each a NetworkRma::Run.
inline constexpr uint64_t kInPayload = UINT64_MAX;
inline constexpr uint64_t kMovedByTarget = UINT64_MAX - 1;

inline constexpr size_t kCounted = MOB_MAX_DIMENSIONS - 1;

// What the target is asked to do, as it travels. The stage holds the list of spans, if that is the
// shape, then the data, then room for what is fetched. A payload begins with the list as SpanWire
// writes it.
struct AmRma::Request {
  uint64_t part;   // of the origin, for the reply
  uint64_t stage;  // place in the window, kInPayload or kMovedByTarget
  uint64_t list_bytes;
  uint64_t data_bytes;
  mob_kind_t kind;
  mob_type_t type;
  mob_op_t op;
  int32_t compare_bytes;  // not 0: a compare-swap, of scale[0] with scale[1]
  int32_t has_scale;
  int32_t wants_key;   // of the memory, with the answer
  int32_t wants_note;  // of what comes by remote memory access, instead of an answer
  alignas(16) uint64_t scale[2];
  // The shape: spans, or a box (a contiguous one has no dimensions).
  int32_t is_spans;
  int32_t dimensions;
  char* remote;
  uint64_t run_bytes;
  // Who is told there, by the last part.
  mob_counter_t target_counter;
  uint64_t* signal;
  uint64_t signal_value;
  mob_signal_op_t signal_op;
  // Of a box, as many as it has dimensions; the rest does not travel.
  struct Dimension {
    uint64_t count;
    int64_t remote_stride;
  } box[kCounted];

  size_t bytes() const {
    return offsetof(Request, box) + static_cast<size_t>(dimensions) * sizeof(Dimension);
  }
};

struct AmRma::Reply {
  uint64_t part;
  mob_status_t status;
  int32_t has_key;
  union {
    char text[256];       // with an error
    Rkeys::Key key;  // with a key
  };

  size_t bytes() const {
    if (status != MOB_OK) return sizeof *this;
    return has_key != 0 ? offsetof(Reply, key) + sizeof key : offsetof(Reply, key);
  }
};

}  // namespace mobius::engine
