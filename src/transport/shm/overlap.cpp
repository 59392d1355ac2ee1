// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/overlap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

namespace mobius::transport {
namespace {

constexpr int kDimensionsMax = 7;

// A box with its strides made positive (which mirrors the box but keeps its overlaps), in
// descending order.
struct Box {
  int64_t run_bytes;
  int dimensions;
  int64_t steps[kDimensionsMax];  // counts less one
  int64_t strides[kDimensionsMax];
};

Box make_box(size_t run_bytes, int dimensions, const size_t* counts, const ptrdiff_t* strides) {
  Box box;  // NOLINT: as many dimensions are filled as there are
  box.run_bytes = static_cast<int64_t>(run_bytes);
  box.dimensions = dimensions;
  for (int d = 0; d < dimensions; ++d) {
    const int64_t stride = std::abs(int64_t{strides[d]});
    const auto steps = static_cast<int64_t>(counts[d] - 1);
    int place = d;
    for (; place > 0 && box.strides[place - 1] < stride; --place) {
      box.strides[place] = box.strides[place - 1];
      box.steps[place] = box.steps[place - 1];
    }
    box.strides[place] = stride;
    box.steps[place] = steps;
  }
  return box;
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Searches for a non-zero difference of two runs' places that is shorter than a run.
class Search {
 public:
  explicit Search(const Box& box) : box_(box) {
    for (int d = box.dimensions - 1; d >= 0; --d) {
      gcd_[d] = std::gcd(gcd_[d + 1], box.strides[d]);
      reach_[d] = reach_[d + 1] + box.steps[d] * box.strides[d];
    }
  }

  // `offset` is the sum of the steps in the dimensions before `d`; `zero`: all those steps are 0.
  bool finds(int d, int64_t offset, bool zero) {
    if (--steps_left_ < 0) return false;
    if (d == box_.dimensions) return !zero && std::abs(offset) < box_.run_bytes;
    const int64_t gcd = gcd_[d];
    const int64_t slack = box_.run_bytes - 1;
    // The remaining dimensions add a multiple of gcd: is there one between -slack - offset and
    // slack - offset?
    if (floor_divide(slack - offset, gcd) * gcd < -slack - offset) return false;

    const int64_t stride = box_.strides[d];
    const int64_t margin = slack + reach_[d + 1];
    const int64_t most = std::min(box_.steps[d], floor_divide(margin - offset, stride));
    // A difference and its opposite are the same pair of runs, so the first non-zero step is
    // positive.
    const int64_t least =
        zero ? 0 : std::max(-box_.steps[d], -floor_divide(margin + offset, stride));
    for (int64_t step = least; step <= most && steps_left_ >= 0; ++step) {
      if (finds(d + 1, offset + step * stride, zero && step == 0)) return true;
    }
    return false;
  }

 private:
  const Box& box_;
  // For the dimensions from d on: every sum of steps along them is a multiple of the first array's
  // element and at most the second's.
  int64_t gcd_[kDimensionsMax + 1] = {};
  int64_t reach_[kDimensionsMax + 1] = {};
  int steps_left_ = 10000;
};

}  // namespace

bool runs_overlap(size_t run_bytes, int dimensions, const size_t* counts,
                  const ptrdiff_t* strides) {
  if (dimensions == 0) return false;
  if (dimensions == 1) return std::abs(strides[0]) < static_cast<ptrdiff_t>(run_bytes);
  const Box box = make_box(run_bytes, dimensions, counts, strides);
  if (box.strides[dimensions - 1] == 0) return true;

  // Nested, as in a part of a larger array: each stride exceeds the extent of the dimensions inside
  // it.
  int64_t extent = box.run_bytes;
  int64_t total = box.run_bytes;
  bool nested = true;
  for (int d = dimensions - 1; d >= 0; --d) {
    nested = nested && box.strides[d] >= extent;
    extent += box.steps[d] * box.strides[d];
    total *= box.steps[d] + 1;
  }
  if (nested) return false;
  if (total > extent) return true;  // more bytes than places
  return Search(box).finds(0, 0, true);
}

}  // namespace mobius::transport
