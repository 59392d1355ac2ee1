// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The table that the inlined operations look at (include/mobius/detail/inline.h): for each target
// rank, the part of it that was used last.

#include <mobius/rma.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace mobius::engine {

// The limits of an entry, for a part of a given size.
using TargetLimits = std::array<uint64_t, 4>;

constexpr TargetLimits target_limits(uint64_t bytes) {
  TargetLimits limits{};
  for (unsigned k = 0; k < limits.size(); ++k) {
    const uint64_t width = uint64_t{1} << k;
    limits[k] = bytes >= width ? bytes - width + 1 : 0;
  }
  return limits;
}

inline mob_target_t_& target_entry(mob_rank_t rank) {
  return mob_targets_[static_cast<uint32_t>(rank) & ((1u << MOB_RANK_INDEX_BITS_) - 1)];
}

inline uint64_t target_tagged(mob_rank_t rank, uint64_t address) {
  return address +
         (uint64_t{static_cast<uint32_t>(rank) >> MOB_RANK_INDEX_BITS_} << MOB_RANK_SHIFT_);
}

// Lets inlined operations on `rank` reach the part at `address` directly. Any thread.
inline void target_remember(mob_rank_t rank, uint64_t address, const TargetLimits& limits) {
  mob_target_t_& entry = target_entry(rank);
  const uint64_t origin = target_tagged(rank, address);
  // Threads that use one part must not write its entry again and again.
  if (__atomic_load_n(&entry.origin, __ATOMIC_RELAXED) == origin &&
      __atomic_load_n(&entry.limit[0], __ATOMIC_RELAXED) == limits[0]) {
    return;
  }
  // Relaxed: inline.h says what a concurrent reader may combine.
  __atomic_store_n(&entry.origin, origin, __ATOMIC_RELAXED);
  for (unsigned k = 0; k < limits.size(); ++k) {
    __atomic_store_n(&entry.limit[k], limits[k], __ATOMIC_RELAXED);
  }
}

// Forgets whatever is remembered of `rank`.
inline void target_forget(mob_rank_t rank) {
  for (uint64_t& limit : target_entry(rank).limit) __atomic_store_n(&limit, 0, __ATOMIC_RELAXED);
}

// Forgets the part of `rank` if it starts at `address`.
inline void target_forget(mob_rank_t rank, uint64_t address) {
  if (__atomic_load_n(&target_entry(rank).origin, __ATOMIC_RELAXED) ==
      target_tagged(rank, address)) {
    target_forget(rank);
  }
}

// Whether `bytes` bytes at `remote` lie in the part remembered for `rank`. For sizes of any length;
// the inlined check of one value is mob_is_direct_().
inline bool target_covers(mob_rank_t rank, const void* remote, size_t bytes) {
  const mob_target_t_& entry = target_entry(rank);
  const uint64_t offset =
      target_tagged(rank, reinterpret_cast<uintptr_t>(remote)) - MOB_ENTRY_LOAD_(entry.origin);
  const uint64_t limit = MOB_ENTRY_LOAD_(entry.limit[0]);
  return offset < limit && bytes <= limit - offset;
}

}  // namespace mobius::engine
