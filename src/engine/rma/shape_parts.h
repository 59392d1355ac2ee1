// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The ranges of a shape that each have to lie in one region of the target's memory.

#include <cstddef>

#include "transport/shm/shape.h"

namespace mobius::engine {

// Calls visit(address, bytes) for each range: a box with its gaps, each piece of a list, each span.
// Stops and returns false as soon as visit() returns false.
template <typename Visit>
bool for_each_part(const transport::Shape& shape, Visit visit) {
  switch (shape.kind) {
    case MOB_CONTIGUOUS:
    case MOB_STRIDED:
      return visit(reinterpret_cast<const void*>(shape.lowest), shape.highest - shape.lowest);
    case MOB_PIECES:
      for (size_t i = 0; i < shape.piece_count; ++i) {
        if (!visit(shape.remotes[i], shape.run_bytes)) return false;
      }
      return true;
    case MOB_SPANS:
      for (size_t i = 0; i < shape.remote_span_count; ++i) {
        const mob_span_t& span = shape.remote_spans[i];
        if (span.bytes != 0 && !visit(span.address, span.bytes)) return false;
      }
      return true;
  }
  return false;
}

}  // namespace mobius::engine
