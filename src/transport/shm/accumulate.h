// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Element-wise atomic accumulate of a shape.

#include <mobius/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/shm/shape.h"

namespace mobius::transport {

inline constexpr unsigned kLockStripes = 64;
inline constexpr size_t kLockBlockBytes = size_t{64} << 10;
inline constexpr size_t kWordZoneBytes = size_t{1} << 10;

// The zones of a block where atomic instructions may update integers without the block's lock. One
// bit for each zone of kWordZoneBytes.
struct WordsIn {
  // Zones where such updates are possible now or soon: a lock holder that sees the bit uses atomic
  // instructions there too.
  uint64_t arriving = 0;
  // Those of `arriving` where every lock holder that missed the bit has released the lock.
  uint64_t admitted = 0;

  static constexpr uint64_t kAll = UINT64_MAX;
};
static_assert(kLockBlockBytes / kWordZoneBytes == 64);

// The zones of a block that `bytes` bytes, which begin in that block, touch.
constexpr uint64_t word_zones(uintptr_t remote, size_t bytes) {
  const size_t begin = remote % kLockBlockBytes;
  const size_t last = std::min(begin + bytes, kLockBlockBytes) - 1;
  const uint64_t up_to_last = WordsIn::kAll >> (63 - last / kWordZoneBytes);
  return up_to_last & (WordsIn::kAll << begin / kWordZoneBytes);
}

// The locks of one target. Every origin that accumulates into the target uses the same locks; one
// origin at a time holds a stripe. `words` is called with the address where a block begins, with
// and without the block's lock.
struct LockTable {
  void* context;
  void (*lock)(void* context, unsigned stripe);
  void (*unlock)(void* context, unsigned stripe);
  WordsIn (*words)(void* context, uintptr_t block);
};

// The stripe that guards the element at an address of the target (in the target's own address
// space). All addresses in a block of kLockBlockBytes have the same stripe.
constexpr unsigned lock_stripe(uintptr_t remote) {
  // Fibonacci hashing: neighbouring blocks get distant stripes, and equal distances do not collide.
  return static_cast<unsigned>((remote / kLockBlockBytes * UINT64_C(0x9E3779B97F4A7C15)) >> 58);
}

// The operation on each element, as normalise() has checked it.
struct Combination {
  mob_type_t type;
  mob_op_t op;
  const void* scale;  // one element, or null
  void* fetched;      // packed, or null
};

// Accumulates a shape. It holds the lock of a stripe, except in zones where other origins update
// integers without the lock: there it uses atomic instructions, elsewhere plain loops. This process
// reaches a remote address at that address plus `remote_delta`. It holds at most one lock at a
// time, and none for longer than about kLockBlockBytes of work.
void accumulate(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                const LockTable& locks);

}  // namespace mobius::transport
