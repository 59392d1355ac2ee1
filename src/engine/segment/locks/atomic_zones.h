// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Where in a chunk of the window integers are updated by atomic instructions without a lock
// (accumulate_locks.h). Lies in shared memory; as zeros it is valid and means nowhere.
//
// A few zones are kept by their numbers; where they do not fit, whole blocks are marked, one bit
// each. A zone or block first *arrives* (it is marked), and is *admitted* once every lock holder
// that missed the mark has left. Neither is taken back before clear().

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transport/shm/accumulate.h"

namespace mobius::engine {

class AtomicZones {
 public:
  static constexpr size_t kChunkBytes = size_t{2} << 20;
  static constexpr uint32_t kAllBlocks = UINT32_MAX;

  // Which zones of the block at an offset of the window have arrived or are admitted. Acquire pairs
  // with the releases below: no holder that missed the marks is left under the lock.
  transport::WordsIn of_block(uint64_t offset) const {
    const uint64_t blocks = blocks_.load(std::memory_order_acquire);
    const uint64_t zones = zones_.load(std::memory_order_acquire);
    if ((blocks | zones) == 0) [[likely]] {
      return {};
    }
    return look(block_of(offset), blocks, zones);
  }

  // Marks the zone of an offset as arriving; false if there is no room for its number. The caller
  // takes the block's lock before it admits the zone.
  bool zone_arrives(uint64_t offset) {
    uint64_t zones = zones_.load(std::memory_order_relaxed);
    const unsigned zone = zone_of(offset);
    while (true) {
      if (find(zones, zone) < kMostZones) return true;
      const unsigned count = count_of(zones);
      if (count == kMostZones) return false;
      const uint64_t more = (zones & ~(uint64_t{15} << kCountShift)) |
                            uint64_t{count + 1} << kCountShift |
                            uint64_t{zone} << (count * kNumberBits + 1);
      // Relaxed: the lock that is taken next orders it.
      if (zones_.compare_exchange_weak(zones, more, std::memory_order_relaxed)) return true;
    }
  }
  void zone_is_admitted(uint64_t offset) {
    const unsigned place = find(zones_.load(std::memory_order_relaxed), zone_of(offset));
    if (place < kMostZones) {
      zones_.fetch_or(uint64_t{1} << place * kNumberBits, std::memory_order_release);
    }
  }

  // The same for blocks, one bit each.
  void blocks_arrive(uint32_t blocks) { blocks_.fetch_or(blocks, std::memory_order_relaxed); }
  void blocks_are_admitted(uint32_t blocks) {
    blocks_.fetch_or(uint64_t{blocks} << kAdmittedShift, std::memory_order_release);
  }
  uint32_t admitted_blocks() const {
    return static_cast<uint32_t>(blocks_.load(std::memory_order_acquire) >> kAdmittedShift);
  }

  // When nobody updates words here any more, nor remembers that he may.
  void clear() {
    blocks_.store(0, std::memory_order_relaxed);
    zones_.store(0, std::memory_order_relaxed);
  }

  static unsigned block_of(uint64_t offset) {
    return static_cast<unsigned>(offset % kChunkBytes / transport::kLockBlockBytes);
  }

 private:
  static constexpr unsigned kZonesPerBlock = transport::kLockBlockBytes / transport::kWordZoneBytes;
  static constexpr unsigned kMostZones = 5;
  // Of a zone of the chunk: its number, and below that whether it is admitted.
  static constexpr unsigned kNumberBits = 12;
  static_assert(kChunkBytes / transport::kWordZoneBytes == 1 << (kNumberBits - 1));
  static_assert(kChunkBytes / transport::kLockBlockBytes == 32);
  // How many there are.
  static constexpr unsigned kCountShift = kMostZones * kNumberBits;
  static_assert(kCountShift + 4 == 64);
  // Of blocks_: those that are arriving, and from here on those that are admitted.
  static constexpr unsigned kAdmittedShift = 32;

  static transport::WordsIn look(unsigned block, uint64_t blocks, uint64_t zones) {
    if ((blocks >> (kAdmittedShift + block) & 1) != 0) {
      return {transport::WordsIn::kAll, transport::WordsIn::kAll};
    }
    transport::WordsIn found;
    for (unsigned i = 0; i < count_of(zones); ++i) {
      const unsigned zone = number(zones, i) >> 1;
      if (zone / kZonesPerBlock != block) continue;
      const uint64_t one = uint64_t{1} << zone % kZonesPerBlock;
      found.arriving |= one;
      if ((number(zones, i) & 1) != 0) found.admitted |= one;
    }
    if ((blocks >> block & 1) != 0) found.arriving = transport::WordsIn::kAll;
    return found;
  }

  static unsigned zone_of(uint64_t offset) {
    return static_cast<unsigned>(offset % kChunkBytes / transport::kWordZoneBytes);
  }
  static unsigned count_of(uint64_t zones) { return static_cast<unsigned>(zones >> kCountShift); }
  static unsigned number(uint64_t zones, unsigned place) {
    return static_cast<unsigned>(zones >> place * kNumberBits) & ((1u << kNumberBits) - 1);
  }
  // Its place; kMostZones if it is not there.
  static unsigned find(uint64_t zones, unsigned zone) {
    for (unsigned i = 0; i < count_of(zones); ++i) {
      if (number(zones, i) >> 1 == zone) return i;
    }
    return kMostZones;
  }

  std::atomic<uint64_t> zones_;
  std::atomic<uint64_t> blocks_;
};
static_assert(sizeof(AtomicZones) == 16);

}  // namespace mobius::engine
