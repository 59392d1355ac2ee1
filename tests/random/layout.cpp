// SPDX-License-Identifier: BSD-3-Clause

// Cuts the memory of a rank into segments with uses.

#include "random/layout.h"

#include <algorithm>

#include "model/elements.h"

namespace random_program {

using mobius_test::Random;

namespace {

// Operations of which many in any order give one result.
mob_op_t commuting_op(Random& random, mob_type_t type) {
  for (;;) {
    const auto op = static_cast<mob_op_t>(random.below(MOB_REPLACE));
    if (mobius_test::is_defined(op, type)) return op;
  }
}

void fill_with_elements(Random& random, Segment* segment) {
  const size_t element = mobius_test::bytes_of(segment->type);
  segment->range.bytes -= segment->range.bytes % element;
  segment->initial.resize(segment->range.bytes);
  for (size_t at = 0; at < segment->range.bytes; at += element) {
    mobius_test::write_exact(random, segment->type, &segment->initial[at]);
  }
}

void make_chain(Random& random, Segment* segment) {
  const size_t die = random.below(100);
  segment->use = die < 45 ? Use::kSumChain : die < 75 ? Use::kSwapChain : Use::kLockedChain;
  segment->by_access = random.chance(50);
  if (segment->use == Use::kSwapChain || random.chance(50)) {
    segment->type = random.chance(50) ? MOB_UINT64 : MOB_UINT32;
  } else {
    segment->type = random.chance(50) ? MOB_INT64 : MOB_DOUBLE;
  }
  const size_t words = std::min<size_t>(random.between(1, 3), segment->range.bytes / 8);
  segment->range.bytes = words * mobius_test::bytes_of(segment->type);
  segment->initial.assign(segment->range.bytes, 0);
}

Segment make_segment(Random& random, const Shape& shape, mob_rank_t rank, Range range) {
  Segment segment;
  segment.rank = rank;
  segment.range = range;
  segment.owner = static_cast<Actor>(random.below(static_cast<size_t>(shape.actors())));
  const size_t die = random.below(100);
  if (die < 40) {
    segment.use = Use::kPrivate;
    return segment;
  }
  if (die < 48) {
    segment.use = Use::kReadOnly;
    return segment;
  }
  // The rest wants alignment.
  const size_t skipped = (16 - range.start % 16) % 16;
  if (range.bytes < skipped + 32) return segment;
  segment.range = {range.start + skipped, range.bytes - skipped};
  if (die < 62) {
    segment.use = Use::kElements;
  } else if (die < 72) {
    segment.use = Use::kShared;
  } else if (die < 82) {
    make_chain(random, &segment);
    return segment;
  } else {
    segment.use = random.chance(70) ? Use::kMessage : Use::kReadMessage;
    segment.word = segment.range.start;
    segment.range = {segment.range.start + 8, segment.range.bytes - 8};
    const auto thread = random.below(static_cast<size_t>(shape.threads));
    segment.told = rank * shape.threads + static_cast<Actor>(thread);
    return segment;
  }
  segment.type = static_cast<mob_type_t>(random.below(MOB_TYPE_COUNT));
  segment.op = commuting_op(random, segment.type);
  fill_with_elements(random, &segment);
  return segment;
}

}  // namespace

std::vector<Segment> cut_memory(Random& random, const Shape& shape) {
  std::vector<Segment> segments;
  for (mob_rank_t rank = 0; rank < shape.ranks; ++rank) {
    size_t at = 0;
    while (at < shape.part_bytes) {
      const size_t left = shape.part_bytes - at;
      const size_t bytes = std::min(left, random.between(1, 40 + shape.part_bytes / 3));
      segments.push_back(make_segment(random, shape, rank, {at, bytes}));
      at += bytes;
    }
  }
  return segments;
}

}  // namespace random_program
