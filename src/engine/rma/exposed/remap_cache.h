// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Caches the range found last in each rank's remapped memory (remaps.h). Calls that the inlined
// check sends out of line look here before they search the owner's list.

#include <mobius/job.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mobius::engine {

// `sequence` is odd during a change; all other fields are relaxed.
struct alignas(64) RemapHit {
  std::atomic<uint64_t> sequence{0};
  std::atomic<mob_rank_t> rank{0};
  std::atomic<uint32_t> uses{0};  // by calls that could have been inlined
  std::atomic<uint64_t> start{0};
  std::atomic<uint64_t> bytes{0};  // 0: empty
  std::atomic<uint64_t> delta{0};  // added to a remote address it gives the address here
  std::atomic<const std::atomic<uint64_t>*> current{nullptr};  // version of the owner's list …
  std::atomic<uint64_t> version{0};                            // … and the version of this entry
};

inline constexpr size_t kRemapHits = 64;

// A range that has its owner's address here, but is used out of line, is looked up again after so
// many uses, so that it can be inlined again (remap_views.h).
inline constexpr uint32_t kUsesPerLook = 64;

inline RemapHit& remap_hit_of(mob_rank_t rank) {
  static constinit std::array<RemapHit, kRemapHits> hits;
  return hits[static_cast<uint32_t>(rank) % kRemapHits];
}

// A pointer here to bytes of a rank's remapped memory if they lie in the cached range; else null.
// Any thread, at any time.
inline void* find_remapped_again(mob_rank_t rank, uintptr_t remote, size_t bytes) {
  RemapHit& hit = remap_hit_of(rank);
  // Acquire pairs with the release in change_remap_hit(): the fields are of this sequence or a
  // later one.
  const uint64_t sequence = hit.sequence.load(std::memory_order_acquire);
  const uint64_t offset = remote - hit.start.load(std::memory_order_relaxed);
  const uint64_t limit = hit.bytes.load(std::memory_order_relaxed);
  if (hit.rank.load(std::memory_order_relaxed) != rank || offset >= limit ||
      bytes > limit - offset) {
    return nullptr;
  }
  const uint64_t delta = hit.delta.load(std::memory_order_relaxed);
  if (delta == 0) {
    const uint32_t uses = hit.uses.load(std::memory_order_relaxed) + 1;
    hit.uses.store(uses, std::memory_order_relaxed);
    if (uses % kUsesPerLook < 2) return nullptr;  // calls ask twice before the lookup
  }
  // Acquire pairs with the release at the end of the owner's change: an entry found before that
  // change is out of date. A mixture of two entries holds the pointer of one of them; both are
  // valid.
  const uint64_t current =
      hit.current.load(std::memory_order_relaxed)->load(std::memory_order_acquire);
  const bool is_current = current == hit.version.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the release below
  if (!is_current || sequence % 2 != 0 ||
      hit.sequence.load(std::memory_order_relaxed) != sequence) {
    return nullptr;
  }
  return reinterpret_cast<void*>(remote + delta);
}

// If another thread is changing the entry, this call does nothing: the entry is only a hint.
template <typename Change>
void change_remap_hit(RemapHit& hit, Change change) {
  uint64_t sequence = hit.sequence.load(std::memory_order_relaxed);
  // Acquire keeps the changes after the exchange, and pairs with the release of the last change.
  if (sequence % 2 != 0 ||
      !hit.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
    return;
  }
  std::atomic_thread_fence(std::memory_order_release);  // pairs with the acquire fence above
  change();
  hit.sequence.store(sequence + 2, std::memory_order_release);  // pairs with the acquire above
}

}  // namespace mobius::engine
