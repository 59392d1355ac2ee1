// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Where integers outside the window are updated by atomic instructions without a lock, in the
// memory that one stripe's lock guards (accumulate_locks.h; atomic_zones.h is for the window). Lies
// in shared memory beside the lock; as zeros it is valid and means nowhere.
//
// A few zones are kept by their addresses; once there is no room for another, all memory of the
// stripe is marked. Zones arrive and are admitted as in atomic_zones.h, but for good: other memory
// may come to lie at an address, and nobody says when.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/accumulate.h"

namespace mobius::engine {

class PrivateAtomicZones {
 public:
  // Which zones of the block at an address of this stripe have arrived or are admitted. Acquire
  // pairs with the releases below: no holder that missed the marks is left under the lock.
  transport::WordsIn of_block(uintptr_t address) const {
    const Whole whole = whole_.load(std::memory_order_acquire);
    if (whole == Whole::kAdmitted) return {transport::WordsIn::kAll, transport::WordsIn::kAll};
    transport::WordsIn found;
    for (const std::atomic<uint64_t>& place : zones_) {
      const uint64_t zone = place.load(std::memory_order_acquire);
      if (zone == 0) break;
      if ((zone >> 1) / kZonesPerBlock != address / transport::kLockBlockBytes) continue;
      const uint64_t one = uint64_t{1} << (zone >> 1) % kZonesPerBlock;
      found.arriving |= one;
      if ((zone & kAdmitted) != 0) found.admitted |= one;
    }
    if (whole == Whole::kArriving) found.arriving = transport::WordsIn::kAll;
    return found;
  }

  // Whether all memory of the stripe is admitted.
  bool is_whole() const { return whole_.load(std::memory_order_acquire) == Whole::kAdmitted; }

  // Marks the zone of an address as arriving or, if there is no room for it, all memory of the
  // stripe. The caller takes the lock before it calls is_admitted().
  void arrives(uintptr_t address) {
    // Relaxed: the lock that is taken next orders it.
    if (find(address) == nullptr) whole_.store(Whole::kArriving, std::memory_order_relaxed);
  }
  void is_admitted(uintptr_t address) {
    // Release pairs with of_block(): a process that sees it need not take the lock.
    if (std::atomic<uint64_t>* const place = find(address)) {
      place->fetch_or(kAdmitted, std::memory_order_release);
    } else {
      whole_.store(Whole::kAdmitted, std::memory_order_release);
    }
  }

 private:
  enum class Whole : uint32_t { kNever, kArriving, kAdmitted };
  static constexpr uintptr_t kZonesPerBlock =
      transport::kLockBlockBytes / transport::kWordZoneBytes;
  static constexpr uint64_t kAdmitted = 1;

  // The entry of the zone of an address, made if there is room for it. Entries fill in order.
  std::atomic<uint64_t>* find(uintptr_t address) {
    const uint64_t zone = address / transport::kWordZoneBytes << 1;
    for (std::atomic<uint64_t>& place : zones_) {
      uint64_t there = 0;
      if (place.compare_exchange_strong(there, zone, std::memory_order_relaxed) ||
          (there & ~kAdmitted) == zone) {
        return &place;
      }
    }
    return nullptr;
  }

  // Each entry is a zone's number, above a bit that says whether the zone is admitted. No memory is
  // in zone 0.
  std::array<std::atomic<uint64_t>, 6> zones_;
  std::atomic<Whole> whole_;
};

}  // namespace mobius::engine
