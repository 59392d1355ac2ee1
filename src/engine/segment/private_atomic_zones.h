// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Where, of the memory that one stripe's lock guards and that does not lie in the window, integers
// are updated by atomic instructions without the lock (stripes.h; word_marks.h is for the window).
// Lies in shared memory, beside the lock; valid, and says nowhere, as zeros.
//
// A few zones are kept by their addresses; once there is no room for another it is all memory of
// the stripe. First something is arriving, then it is admitted, as in word_marks.h, and for good:
// what lies at an address may change, but nobody tells when.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/accumulate.h"

namespace mobius::engine {

class PrivateAtomicZones {
 public:
  // What is to be known of the block at an address, which is of this stripe. Acquire pairs with the
  // releases below: nobody is left under the lock.
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

  // Whether it is all memory of the stripe.
  bool is_whole() const { return whole_.load(std::memory_order_acquire) == Whole::kAdmitted; }

  // Has the zone of an address arrive, or, if there is no room to remember it, all memory. The
  // caller takes the lock before it has it admitted.
  void arrives(uintptr_t address) {
    // Relaxed: the lock that is taken next orders it.
    if (find(address) == nullptr) whole_.store(Whole::kArriving, std::memory_order_relaxed);
  }
  void is_admitted(uintptr_t address) {
    // Release pairs with of_block(): who sees it need not take the lock.
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

  // Where the zone of an address is kept, from now on if there is room. Places fill in order.
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

  // Of each its address in zones, and below that whether it is admitted; no memory is at zone 0.
  std::array<std::atomic<uint64_t>, 6> zones_;
  std::atomic<Whole> whole_;
};

}  // namespace mobius::engine
