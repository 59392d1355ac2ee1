// SPDX-License-Identifier: BSD-3-Clause
#include "random/segment.h"

#include <cstring>

#include "model/elements.h"

namespace random_program {

namespace {

template <typename T>
bool compares_as(mob_compare_t compare, uint64_t word, uint64_t value) {
  const auto a = static_cast<T>(word);
  const auto b = static_cast<T>(value);
  switch (compare) {
    case MOB_EQ:
      return a == b;
    case MOB_NE:
      return a != b;
    case MOB_GT:
      return a > b;
    case MOB_GE:
      return a >= b;
    case MOB_LT:
      return a < b;
    case MOB_LE:
      return a <= b;
  }
  return false;
}

}  // namespace

size_t flag_width(const Segment& segment) { return mobius_test::bytes_of(segment.type); }

Range flag_slice(const Segment& segment, size_t word) {
  const size_t bytes = segment.range.bytes / segment.flags.senders.size();
  return {segment.range.start + word * bytes, bytes};
}

std::vector<unsigned char> first_words(const Segment& segment) {
  const size_t width = flag_width(segment);
  std::vector<unsigned char> words(segment.flags.first.size() * width);
  for (size_t i = 0; i < segment.flags.first.size(); ++i) {
    std::memcpy(&words[i * width], &segment.flags.first[i], width);
  }
  return words;
}

bool compares(mob_compare_t compare, mob_type_t type, uint64_t word, uint64_t value) {
  switch (type) {
    case MOB_INT32:
      return compares_as<int32_t>(compare, word, value);
    case MOB_UINT32:
      return compares_as<uint32_t>(compare, word, value);
    case MOB_INT64:
      return compares_as<int64_t>(compare, word, value);
    default:
      return compares_as<uint64_t>(compare, word, value);
  }
}

}  // namespace random_program
