// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The table that the inlined operations read (include/mobius/detail/inline.h): for each target
// rank, the region that was used last by puts and gets, and the one used last by atomic updates of
// words.

#include <mobius/rma.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace mobius::engine {

// The limits of an entry, for a region of a given size.
using TargetLimits = std::array<uint64_t, 4>;

constexpr TargetLimits target_limits(uint64_t bytes) {
  TargetLimits limits{};
  for (unsigned k = 0; k < limits.size(); ++k) {
    const uint64_t width = uint64_t{1} << k;
    limits[k] = bytes >= width ? bytes - width + 1 : 0;
  }
  return limits;
}

enum class TargetUse : uint32_t { kBytes = MOB_BYTE_ENTRIES_, kWords = MOB_WORD_ENTRIES_ };

inline mob_target_t_& target_entry(mob_rank_t rank, TargetUse use = TargetUse::kBytes) {
  return mob_targets_[static_cast<uint32_t>(use) +
                      (static_cast<uint32_t>(rank) & ((1u << MOB_RANK_INDEX_BITS_) - 1))];
}

inline uint64_t target_tagged(mob_rank_t rank, uint64_t address) {
  return address +
         (uint64_t{static_cast<uint32_t>(rank) >> MOB_RANK_INDEX_BITS_} << MOB_RANK_SHIFT_);
}

// Entries are only hints, so no thread waits to change one: a thread that finds an entry locked
// leaves it. Acquire and release pair with each other, so changes of one entry do not mix. Readers
// take no lock; all accesses are relaxed, and inline.h says what a reader may combine.
inline bool target_try_lock(mob_target_t_& entry) {
  return __atomic_exchange_n(&entry.busy, uint16_t{1}, __ATOMIC_ACQUIRE) == 0;
}

inline void target_unlock(mob_target_t_& entry) {
  __atomic_store_n(&entry.busy, uint16_t{0}, __ATOMIC_RELEASE);
}

// Where the remembered memory is: in the window, or in a view of remapped memory, which its owner
// may revoke (rma/exposed/remap_views.h).
enum class TargetPlace : uint16_t { kWindow, kView };

// Lets inlined operations on `rank` reach the region at `address` directly, and keeps the region
// that they could reach before for target_recall(). Any thread.
inline void target_remember(mob_rank_t rank, TargetUse use, uint64_t address,
                            const TargetLimits& limits, TargetPlace place = TargetPlace::kWindow) {
  mob_target_t_& entry = target_entry(rank, use);
  const uint64_t origin = target_tagged(rank, address);
  if (!target_try_lock(entry)) return;
  const uint64_t old_origin = __atomic_load_n(&entry.origin, __ATOMIC_RELAXED);
  if (old_origin != origin) {
    // A view is not kept for target_recall(): its owner would have to revoke it in two places.
    if (__atomic_load_n(&entry.is_view, __ATOMIC_RELAXED) == 0) {
      __atomic_store_n(&entry.other_origin, old_origin, __ATOMIC_RELAXED);
      __atomic_store_n(&entry.other_bytes, __atomic_load_n(&entry.limit[0], __ATOMIC_RELAXED),
                       __ATOMIC_RELAXED);
    }
    __atomic_store_n(&entry.is_view, static_cast<uint16_t>(place), __ATOMIC_RELAXED);
    __atomic_store_n(&entry.origin, origin, __ATOMIC_RELAXED);
  }
  for (unsigned k = 0; k < limits.size(); ++k) {
    __atomic_store_n(&entry.limit[k], limits[k], __ATOMIC_RELAXED);
  }
  target_unlock(entry);
}

// Whether `bytes` bytes at `remote` lie in the region remembered before the current one. A program
// that alternates between two regions finds one inlined and the other here. A program that has
// moved on for good must not stay on this slower path, so now and then the two change places. Any
// thread.
inline bool target_recall(mob_rank_t rank, const void* remote, size_t bytes) {
  constexpr uint32_t kRecallsPerChange = 32;
  mob_target_t_& entry = target_entry(rank);
  const uint64_t origin = __atomic_load_n(&entry.other_origin, __ATOMIC_RELAXED);
  const uint64_t limit = __atomic_load_n(&entry.other_bytes, __ATOMIC_RELAXED);
  const uint64_t offset = target_tagged(rank, reinterpret_cast<uintptr_t>(remote)) - origin;
  if (offset >= limit || bytes > limit - offset) return false;
  const uint32_t recalls = __atomic_load_n(&entry.recalls, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&entry.recalls, recalls, __ATOMIC_RELAXED);
  // A caller that misses out on this finds the part by translation, which remembers it.
  return recalls % kRecallsPerChange != 0;
}

// Whether puts and gets reach a view in `rank` now.
inline bool target_has_view(mob_rank_t rank) {
  const mob_target_t_& entry = target_entry(rank);
  return __atomic_load_n(&entry.is_view, __ATOMIC_RELAXED) != 0 &&
         MOB_ENTRY_LOAD_(entry.limit[0]) != 0;
}

// Whether an entry is to change now. A program that alternates between two ranges finds one of them
// there, and does not pay for a change each time. Any thread.
inline bool target_is_due(mob_rank_t rank, TargetUse use) {
  constexpr uint32_t kUsesPerChange = 16;
  mob_target_t_& entry = target_entry(rank, use);
  const uint32_t uses = __atomic_load_n(&entry.recalls, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&entry.recalls, uses, __ATOMIC_RELAXED);
  return uses % kUsesPerChange == 0;
}

// Forgets what one entry of `rank` holds that overlaps `bytes` bytes at `address`; waits for a
// thread that changes the entry.
inline void target_forget(mob_rank_t rank, TargetUse use, uint64_t address, uint64_t bytes) {
  mob_target_t_& entry = target_entry(rank, use);
  while (!target_try_lock(entry)) {
  }
  const uint64_t start = target_tagged(rank, address);
  const auto overlaps = [&](uint64_t origin, uint64_t limit) {
    return origin - start < bytes || start - origin < limit;
  };
  if (overlaps(__atomic_load_n(&entry.origin, __ATOMIC_RELAXED),
               __atomic_load_n(&entry.limit[0], __ATOMIC_RELAXED))) {
    for (uint64_t& limit : entry.limit) __atomic_store_n(&limit, 0, __ATOMIC_RELAXED);
  }
  if (overlaps(__atomic_load_n(&entry.other_origin, __ATOMIC_RELAXED),
               __atomic_load_n(&entry.other_bytes, __ATOMIC_RELAXED))) {
    __atomic_store_n(&entry.other_bytes, 0, __ATOMIC_RELAXED);
  }
  target_unlock(entry);
}

inline void target_forget_all(mob_rank_t rank, uint64_t address, uint64_t bytes) {
  for (const TargetUse use : {TargetUse::kBytes, TargetUse::kWords}) {
    target_forget(rank, use, address, bytes);
  }
}

// Forgets what all entries of ranks 0 to `size` - 1 hold, in a process that has no other thread.
inline void target_forget_in_child(mob_rank_t size) {
  for (mob_rank_t rank = 0; rank < size; ++rank) {
    for (const TargetUse use : {TargetUse::kBytes, TargetUse::kWords}) {
      mob_target_t_& entry = target_entry(rank, use);
      for (uint64_t& limit : entry.limit) limit = 0;
      entry.other_bytes = 0;
    }
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
