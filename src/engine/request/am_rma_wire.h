// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Requests and replies between the two sides of a transfer that the target carries out, for
// am_rma*.cpp alone.

#include <mobius/message.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/request/am_rma.h"
#include "engine/request/rkeys.h"

namespace mobius::engine {

// Maximum size of a stage: longer transfers are split, so that packing and carrying out overlap.
inline constexpr size_t kStageBytes = size_t{1} << 20;
// Maximum number of spans of a stage.
inline constexpr size_t kMostSpansSent = kStageBytes / 64;

// Special values of Request::stage. kInPayload: the payload holds the contents of a stage.
// kMovedByTarget: the payload lists the runs that the target is to move itself, each a
// NetworkRma::Run.
inline constexpr uint64_t kInPayload = UINT64_MAX;
inline constexpr uint64_t kMovedByTarget = UINT64_MAX - 1;

inline constexpr size_t kCounted = MOB_MAX_DIMENSIONS - 1;

// A request as it travels. The stage holds the list of spans, if the shape has one, then the data,
// then room for fetched values. A payload begins with the list as SpanWire writes it.
struct AmRma::Request {
  uint64_t part;   // the origin's number, returned in the reply
  uint64_t stage;  // offset in the window, kInPayload or kMovedByTarget
  uint64_t list_bytes;
  uint64_t data_bytes;
  mob_kind_t kind;
  mob_type_t type;
  mob_op_t op;
  int32_t compare_bytes;  // not 0: a compare-swap; scale[0] is expected, scale[1] desired
  int32_t has_scale;
  int32_t wants_key;   // for the memory, in the answer
  int32_t wants_note;  // with the data of remote memory access, instead of an answer
  alignas(16) uint64_t scale[2];
  // The shape: spans, or a box (a contiguous one has no dimensions).
  int32_t is_spans;
  int32_t dimensions;
  char* remote;
  uint64_t run_bytes;
  // Notified by the last part.
  mob_counter_t target_counter;
  uint64_t* signal;
  uint64_t signal_value;
  mob_signal_op_t signal_op;
  // For a box: only as many entries travel as it has dimensions.
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
    char text[256];  // with an error
    Rkeys::Key key;  // with a key
  };

  size_t bytes() const {
    if (status != MOB_OK) return sizeof *this;
    return has_key != 0 ? offsetof(Reply, key) + sizeof key : offsetof(Reply, key);
  }
};

}  // namespace mobius::engine
