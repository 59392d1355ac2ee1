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

// Where in a block integers may be updated by atomic instructions without its lock: a bit for each
// zone of kWordZoneBytes.
struct WordsIn {
  uint64_t arriving = 0;  // soon, or already: who has the lock and sees this uses such instructions
  uint64_t admitted = 0;  // of these, where nobody who does otherwise has the lock any more

  static constexpr uint64_t kAll = UINT64_MAX;
};
static_assert(kLockBlockBytes / kWordZoneBytes == 64);

// The zones of a block that `bytes` bytes which begin in it have a part of.
constexpr uint64_t word_zones(uintptr_t remote, size_t bytes) {
  const size_t begin = remote % kLockBlockBytes;
  const size_t last = std::min(begin + bytes, kLockBlockBytes) - 1;
  const uint64_t up_to_last = WordsIn::kAll >> (63 - last / kWordZoneBytes);
  return up_to_last & (WordsIn::kAll << begin / kWordZoneBytes);
}

// The locks of one target. All who accumulate into one target use the same locks; a stripe is
// locked by one of them at a time. `words` is asked of a block, by the address where it begins,
// with its lock and without it.
struct LockTable {
  void* context;
  void (*lock)(void* context, unsigned stripe);
  void (*unlock)(void* context, unsigned stripe);
  WordsIn (*words)(void* context, uintptr_t block);
};

// The stripe that guards the element at an address of the target (in the target's own terms): equal
// within a block of kLockBlockBytes.
constexpr unsigned lock_stripe(uintptr_t remote) {
  // Fibonacci hashing: neighbours go to distant stripes, and equal distances do not collide.
  return static_cast<unsigned>((remote / kLockBlockBytes * UINT64_C(0x9E3779B97F4A7C15)) >> 58);
}

// What happens to each element, as normalise() has checked it.
struct Combination {
  mob_type_t type;
  mob_op_t op;
  const void* scale;  // one element, or null
  void* fetched;      // packed, or null
};

// Does it: under the lock of a stripe, unless integers there are combined by atomic instructions
// because others do so without the lock; those of zones where nobody does, by loops. A remote
// address is reached at itself plus `remote_delta` in this process. Holds at most one lock at a
// time, and none for longer than about kLockBlockBytes of work.
void accumulate(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                const LockTable& locks);

}  // namespace mobius::transport
