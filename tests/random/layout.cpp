// SPDX-License-Identifier: BSD-3-Clause

// Cuts the memory of a rank into segments with uses.

#include "random/layout.h"

#include <algorithm>

#include "model/elements.h"

namespace random_program {

using mobius_test::Random;

mob_op_t commuting_op(Random& random, mob_type_t type) {
  for (;;) {
    const auto op = static_cast<mob_op_t>(random.below(MOB_REPLACE));
    if (mobius_test::is_defined(op, type)) return op;
  }
}

namespace {

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
  segment->lock = static_cast<Lock>(random.below(3));
  if (segment->use == Use::kSwapChain || random.chance(50)) {
    segment->type = random.chance(50) ? MOB_UINT64 : MOB_UINT32;
  } else {
    segment->type = random.chance(50) ? MOB_INT64 : MOB_DOUBLE;
  }
  const size_t words = std::min<size_t>(random.between(1, 3), segment->range.bytes / 8);
  segment->range.bytes = words * mobius_test::bytes_of(segment->type);
  segment->initial.assign(segment->range.bytes, 0);
}

// A word for which the comparison holds, or one for which it does not.
uint64_t some_word(Random& random, const Segment& segment, uint64_t value, bool fulfils) {
  const uint64_t mask = flag_width(segment) == 8 ? ~uint64_t{0} : ~uint32_t{0};
  for (;;) {
    const uint64_t word = (random.chance(60) ? value + random.below(3) - 1 : random.next()) & mask;
    if (compares(segment.flags.compare, segment.type, word, value) == fulfils) return word;
  }
}

void make_flags(Random& random, const Shape& shape, Segment* segment) {
  segment->use = Use::kFlags;
  const mob_type_t types[] = {MOB_INT32, MOB_UINT32, MOB_INT64, MOB_UINT64};
  segment->type = types[random.below(4)];
  Flags& flags = segment->flags;
  flags.compare = static_cast<mob_compare_t>(random.below(MOB_COMPARE_COUNT));
  flags.one_value = random.chance(40);
  const size_t words = random.between(1, std::min<size_t>(6, segment->range.bytes / 16));
  for (size_t i = 0; i < words; ++i) {
    uint64_t value = random.chance(30) ? random.below(3) : random.next();
    // No word is less than the least one, for example: a value in the middle has words on both
    // sides.
    const uint64_t middle = uint64_t{1} << (flag_width(*segment) * 8 - 2);
    value = value % (middle - 2) + 1;
    flags.values.push_back(flags.one_value && i > 0 ? flags.values[0] : value);
    const auto actor = static_cast<Actor>(random.below(static_cast<size_t>(shape.actors())));
    flags.senders.push_back(random.chance(15) ? -1 : actor);
    flags.first.push_back(some_word(random, *segment, flags.values[i], false));
    flags.last.push_back(some_word(random, *segment, flags.values[i], true));
  }
  segment->word = segment->range.start;
  const size_t bytes = words * flag_width(*segment);
  segment->range = {segment->range.start + bytes, segment->range.bytes - bytes};
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
  // The rest must be aligned.
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
  } else if (die < 89) {
    make_flags(random, shape, &segment);
    segment.told =
        shape.actor_of(rank, static_cast<int>(random.below(static_cast<size_t>(shape.threads))));
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
