// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shape of a transfer, checked and reduced to what its loops need.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace mobius::transport {

// Made by normalise(). The lists of pieces and spans stay the caller's; nothing else points out.
struct Shape {
  mob_shape_t kind = MOB_CONTIGUOUS;
  size_t total_bytes = 0;  // 0: nothing to do, and nothing below is set

  // Bytes of the target that the shape lies within; of lists both 0 where that is not known.
  uintptr_t lowest = 0;   // first
  uintptr_t highest = 0;  // one past the last

  // Contiguous, strided: where the first run is.
  char* remote = nullptr;
  char* local = nullptr;
  // Of a run, or a piece; of spans where all runs have as many: both lists are of such spans, or
  // one is and the other is a single span. 0 where they differ.
  size_t run_bytes = 0;

  // Strided: at least one dimension, of which the first turns fastest. Every count is at least 2;
  // what lies beyond `dimensions` is not set.
  int dimensions = 0;
  size_t counts[MOB_MAX_DIMENSIONS - 1];
  ptrdiff_t remote_strides[MOB_MAX_DIMENSIONS - 1];
  ptrdiff_t local_strides[MOB_MAX_DIMENSIONS - 1];

  // Pieces.
  size_t piece_count = 0;
  void* const* remotes = nullptr;
  void* const* locals = nullptr;

  // Spans.
  const mob_span_t* remote_spans = nullptr;
  const mob_span_t* local_spans = nullptr;
  size_t remote_span_count = 0;
  size_t local_span_count = 0;
  bool is_paired = false;  // each span of one list has as many bytes as its fellow in the other
};

// Checks kind, shape and, for accumulates, type, operation and alignment of a description (not its
// rank, and not whether the target has the bytes), and fills `shape`. Dimensions of one repetition
// are dropped, those that continue each other on both sides are merged; the order of bytes stays.
//
// MOB_ERR_ARGUMENT, MOB_ERR_RANGE: as mob_transfer() says; `call` begins the text, and `shape` is
// of no use.
mob_status_t normalise(const char* call, const mob_transfer_t& transfer, Shape* shape);

// The strides that one side of a strided shape has where its runs lie one after the other.
inline void pack_strides(const Shape& shape, ptrdiff_t* strides) {
  auto stride = static_cast<ptrdiff_t>(shape.run_bytes);
  for (int i = 0; i < shape.dimensions; ++i) {
    strides[i] = stride;
    stride *= static_cast<ptrdiff_t>(shape.counts[i]);
  }
}

// Calls row(remote, local) with the first run of every innermost dimension of a strided shape, in
// order.
template <typename Row>
mob_status_t for_each_row(const Shape& shape, Row row) {
  char* remote = shape.remote;
  char* local = shape.local;
  if (shape.dimensions <= 1) return row(remote, local);
  size_t index[MOB_MAX_DIMENSIONS - 1] = {};
  for (;;) {
    for (size_t i = 0; i < shape.counts[1]; ++i) {
      const auto step = static_cast<ptrdiff_t>(i);
      if (const mob_status_t status =
              row(remote + step * shape.remote_strides[1], local + step * shape.local_strides[1])) {
        return status;
      }
    }
    int dimension = 2;
    for (; dimension < shape.dimensions; ++dimension) {
      remote += shape.remote_strides[dimension];
      local += shape.local_strides[dimension];
      if (++index[dimension] < shape.counts[dimension]) break;
      const auto back = static_cast<ptrdiff_t>(shape.counts[dimension]);
      remote -= back * shape.remote_strides[dimension];
      local -= back * shape.local_strides[dimension];
      index[dimension] = 0;
    }
    if (dimension >= shape.dimensions) return MOB_OK;
  }
}

// Calls visit(remote, local, bytes) for every run, in order, until one does not return MOB_OK, and
// returns what the last returned. Spans are cut where either list goes to its next one.
template <typename Visit>
mob_status_t for_each_run(const Shape& shape, Visit visit) {
  if (shape.total_bytes == 0) return MOB_OK;
  switch (shape.kind) {
    case MOB_CONTIGUOUS:
      return visit(shape.remote, shape.local, shape.run_bytes);

    case MOB_STRIDED:
      return for_each_row(shape, [&](char* remote, char* local) {
        for (size_t i = 0; i < shape.counts[0]; ++i) {
          const auto step = static_cast<ptrdiff_t>(i);
          if (const mob_status_t status =
                  visit(remote + step * shape.remote_strides[0],
                        local + step * shape.local_strides[0], shape.run_bytes)) {
            return status;
          }
        }
        return MOB_OK;
      });

    case MOB_PIECES:
      for (size_t i = 0; i < shape.piece_count; ++i) {
        if (const mob_status_t status =
                visit(static_cast<char*>(shape.remotes[i]), static_cast<char*>(shape.locals[i]),
                      shape.run_bytes)) {
          return status;
        }
      }
      return MOB_OK;

    case MOB_SPANS:
      break;
  }
  const mob_span_t* remote = shape.remote_spans;
  const mob_span_t* local = shape.local_spans;
  size_t remote_done = 0;
  size_t local_done = 0;
  for (size_t left = shape.total_bytes; left != 0;) {
    const size_t remote_left = remote->bytes - remote_done;
    const size_t local_left = local->bytes - local_done;
    const size_t bytes = remote_left < local_left ? remote_left : local_left;
    if (bytes != 0) {
      if (const mob_status_t status =
              visit(static_cast<char*>(remote->address) + remote_done,
                    static_cast<char*>(local->address) + local_done, bytes)) {
        return status;
      }
    }
    left -= bytes;
    remote_done += bytes;
    local_done += bytes;
    if (remote_done == remote->bytes) {
      ++remote;
      remote_done = 0;
    }
    if (local_done == local->bytes) {
      ++local;
      local_done = 0;
    }
  }
  return MOB_OK;
}

// Cuts a contiguous or strided shape into parts that are such shapes, too, in order: of as many of
// its runs as fit, one after the other in as few dimensions as they need; longer runs are cut.
class Parts {
 public:
  // `shape` has bytes, and stays until the last part was made.
  Parts(const Shape& shape, size_t most_bytes);

  bool is_at_end() const { return left_ == 0; }
  // The next part; not at the end.
  Shape next();

 private:
  void advance(size_t count);

  const Shape& shape_;
  size_t left_;            // bytes
  int whole_ = 0;          // dimensions that every part has whole
  size_t whole_bytes_;     // of a run in all of them
  size_t most_count_ = 1;  // so many of those in a part
  size_t most_of_run_;     // less than a run if runs are cut
  size_t done_of_run_ = 0;
  size_t index_[MOB_MAX_DIMENSIONS - 1] = {};  // of the next part, from dimension `whole_` on
};

}  // namespace mobius::transport
