// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mobius::os {

// A set of processors of this machine; valid as zeros, the empty set. Beyond a number, different
// processors count as one.
struct ProcessorSet {
  static constexpr size_t kMost = 1024;

  // The processors on which the calling thread may run, at least one.
  static ProcessorSet allowed();

  void add(size_t processor) { words[processor % kMost / 64] |= uint64_t{1} << processor % 64; }
  int count() const;
  bool overlaps(const ProcessorSet& other) const;

  uint64_t words[kMost / 64];
};

// The number of processors on which the calling thread may run.
inline int processors_allowed() { return ProcessorSet::allowed().count(); }

// Bytes of a processor's second-level cache; 0 if unknown.
size_t second_level_cache_bytes();

// Whether there is a processor for each of several processes that may run on given sets.
enum class Room {
  kCrowded,  // some must share a processor
  kOneEach,
  kSpare  // more processors than processes
};
Room room_for(const std::vector<ProcessorSet>& sets);

}  // namespace mobius::os
