// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shape of a transfer, checked and reduced to the facts that its loops need.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace mobius::transport {

// Made by normalise(). The lists of pieces and spans remain the caller's; there are no other
// pointers into the caller's description.
struct Shape {
  mob_shape_t kind = MOB_CONTIGUOUS;
  size_t total_bytes = 0;  // 0: nothing to do, and no member below is set

  // Range of the target's bytes that contains the shape; for lists both are 0 where it is not
  // known.
  uintptr_t lowest = 0;   // first
  uintptr_t highest = 0;  // one past the last

  // Contiguous, strided: the first run.
  char* remote = nullptr;
  char* local = nullptr;
  // Bytes of a run, or of a piece. For spans: bytes of each run if all are equal, so that both
  // lists have spans of that size, or one list does and the other is a single span. 0 if they
  // differ.
  size_t run_bytes = 0;

  // Strided: at least one dimension; the first changes fastest. Every count is at least 2. Elements
  // beyond `dimensions` are not set.
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
  bool is_paired = false;  // each span of one list has as many bytes as its partner in the other
};

// Checks kind, shape and, for accumulates, type, operation and alignment of a description, and
// fills `shape`. It does not check the rank, nor whether the target has the bytes. It drops
// dimensions of one repetition and merges those that continue each other on both sides; the order
// of bytes stays.
//
// MOB_ERR_ARGUMENT, MOB_ERR_RANGE: as mob_transfer() says; the text begins with `call`, and `shape`
// is unusable.
mob_status_t normalise(const char* call, const mob_transfer_t& transfer, Shape* shape);

// The strides of one side of a strided shape if its runs were contiguous.
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

// Calls visit(remote, local, bytes) for every run, in order, until one call does not return MOB_OK,
// and returns the last result. Spans are cut where either list moves on to its next span.
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

// Cuts a contiguous or strided shape into parts that are such shapes too, in order. Each part has
// as many runs as fit, one after the other in as few dimensions as they need; a run that is too
// long is cut.
class Parts {
 public:
  // `shape` has bytes, and must outlive the making of the last part.
  Parts(const Shape& shape, size_t most_bytes);

  bool is_at_end() const { return left_ == 0; }
  // The next part; must not be called at the end.
  Shape next();

 private:
  void advance(size_t count);

  const Shape& shape_;
  size_t left_;            // bytes
  int whole_ = 0;          // number of innermost dimensions that every part has completely
  size_t whole_bytes_;     // bytes of a run in all of those
  size_t most_count_ = 1;  // largest number of those in a part
  size_t most_of_run_;     // less than a run if runs are cut
  size_t done_of_run_ = 0;
  // Position of the next part, from dimension `whole_` on.
  size_t index_[MOB_MAX_DIMENSIONS - 1] = {};
};

}  // namespace mobius::transport
