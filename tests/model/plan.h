// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A transfer in offsets, so that the library can carry it out on shared memory, and the model on a
// copy of it.

#include <mobius/mobius.h>

#include <string>
#include <vector>

#include "model/random.h"

namespace mobius_test {

struct Range {
  size_t start = 0;
  size_t bytes = 0;
  size_t end() const { return start + bytes; }
  bool overlaps(const Range& other) const { return start < other.end() && other.start < end(); }
};

struct Plan {
  mob_kind_t kind = MOB_PUT;
  mob_shape_t shape = MOB_CONTIGUOUS;
  mob_rank_t rank = 0;
  size_t remote = 0;
  size_t local = 0;
  size_t bytes = 0;
  std::vector<size_t> counts;
  std::vector<ptrdiff_t> remote_strides;
  std::vector<ptrdiff_t> local_strides;
  std::vector<size_t> remotes;
  std::vector<size_t> locals;
  std::vector<Range> remote_spans;
  std::vector<Range> local_spans;
  mob_type_t type = MOB_INT64;
  mob_op_t op = MOB_SUM;
  std::vector<unsigned char> scale;  // empty: none
  size_t fetched = 0;
  size_t total_bytes = 0;
  // Every accessed byte lies in these ranges.
  Range remote_hull;
  Range local_hull;

  bool accumulates() const { return kind == MOB_ACCUMULATE || kind == MOB_FETCH_ACCUMULATE; }
  bool fetches() const { return kind == MOB_FETCH_ACCUMULATE; }
  bool writes_remote() const { return kind != MOB_GET; }
  std::string text() const;
};

// The plan as the library takes it, on memory at given places.
class Description {
 public:
  Description(const Plan& plan, unsigned char* remote, unsigned char* local,
              unsigned char* fetched);
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  mob_transfer_t transfer{};

 private:
  std::vector<void*> remotes_;
  std::vector<void*> locals_;
  std::vector<mob_span_t> remote_spans_;
  std::vector<mob_span_t> local_spans_;
};

// Carries out a transfer whose addresses are all valid in the caller. Counts no counter.
void carry_out(const mob_transfer_t& transfer);

// Fills shape and offsets of a plan whose kind (for accumulates also type and operation) is set,
// within the two ranges; elements at multiples of their size on both sides. False if nothing fits.
bool shape_plan(Random& random, mob_shape_t shape, Range remote, Range local, Plan* plan);

}  // namespace mobius_test
