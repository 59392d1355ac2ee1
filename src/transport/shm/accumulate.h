// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Element-wise atomic accumulate of a shape.

#include <mobius/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/shape.h"

namespace mobius::transport {

// Whether integers of a stripe may be updated by atomic instructions without its lock.
enum class WordsIn : uint32_t {
  kNever,     // so far
  kArriving,  // soon: who has the lock and sees this uses such instructions, too
  kAdmitted,  // nobody who does otherwise has the lock any more
};

// The locks of one target. All who accumulate into one target use the same locks; a stripe is
// locked by one of them at a time. `words` is asked with the lock and without it.
struct LockTable {
  void* context;
  void (*lock)(void* context, unsigned stripe);
  void (*unlock)(void* context, unsigned stripe);
  WordsIn (*words)(void* context, unsigned stripe);
};

inline constexpr unsigned kLockStripes = 64;
inline constexpr size_t kLockBlockBytes = size_t{64} << 10;

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
// because others do so without the lock. A remote address is reached at itself plus `remote_delta`
// in this process. Holds at most one lock at a time, and none for longer than about kLockBlockBytes
// of work.
void accumulate(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                const LockTable& locks);

}  // namespace mobius::transport
