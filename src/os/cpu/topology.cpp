// SPDX-License-Identifier: BSD-3-Clause
#include "os/cpu/topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace mobius::os {

ProcessorSet ProcessorSet::allowed() {
  ProcessorSet result{};
  // The kernel refuses (EINVAL) a mask shorter than its own, so grow the mask until it fits.
  for (size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) != 0) continue;
    for (size_t i = 0; i < bytes * 8; ++i) {
      if (CPU_ISSET_S(i, bytes, mask.data())) result.add(i);
    }
    break;
  }
  if (result.count() != 0) return result;
  const long online = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  for (size_t i = 0; i < static_cast<size_t>(online); ++i) result.add(i);
  return result;
}

size_t second_level_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

int ProcessorSet::count() const {
  return std::accumulate(std::begin(words), std::end(words), 0,
                         [](int sum, uint64_t word) { return sum + std::popcount(word); });
}

bool ProcessorSet::overlaps(const ProcessorSet& other) const {
  for (size_t i = 0; i < std::size(words); ++i) {
    if ((words[i] & other.words[i]) != 0) return true;
  }
  return false;
}

// Processes with few allowed processors choose first. That finds a place for all wherever sets are
// disjoint or nested, as launchers make them.
Room room_for(const std::vector<ProcessorSet>& sets) {
  ProcessorSet all{};
  for (const ProcessorSet& set : sets) {
    for (size_t word = 0; word < std::size(all.words); ++word) all.words[word] |= set.words[word];
  }
  const auto processors = static_cast<size_t>(all.count());
  if (processors < sets.size()) return Room::kCrowded;
  std::vector<size_t> order(sets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(sets[i].count(), i); });
  ProcessorSet taken{};
  for (const size_t i : order) {
    bool found = false;
    for (size_t word = 0; word < std::size(taken.words) && !found; ++word) {
      const uint64_t free = sets[i].words[word] & ~taken.words[word];
      taken.words[word] |= free & (~free + 1);  // the lowest
      found = free != 0;
    }
    if (!found) return Room::kCrowded;
  }
  return processors > sets.size() ? Room::kSpare : Room::kOneEach;
}

}  // namespace mobius::os
