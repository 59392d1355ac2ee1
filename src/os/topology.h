// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mobius::os {

// Processors of this machine; valid as zeros, none. Beyond so many some are taken for the same.
struct ProcessorSet {
  static constexpr size_t kMost = 1024;

  // Those that the calling thread may run on, at least one.
  static ProcessorSet allowed();

  void add(size_t processor) { words[processor % kMost / 64] |= uint64_t{1} << processor % 64; }
  int count() const;
  bool overlaps(const ProcessorSet& other) const;

  uint64_t words[kMost / 64];
};

// The number of those that the calling thread may run on.
inline int processors_allowed() { return ProcessorSet::allowed().count(); }

// Bytes that the second-level cache of a processor holds; 0 if that is not known.
size_t second_level_cache_bytes();

// How processes that each may run on a set of processors fit there.
enum class Room {
  kCrowded,  // some have to share one
  kOneEach,
  kSpare  // more processors than processes
};
Room room_for(const std::vector<ProcessorSet>& sets);

}  // namespace mobius::os
