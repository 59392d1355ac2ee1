// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The wider rings to which a pair of host-mates goes over once much has flowed between them.

#include <cstddef>
#include <cstdint>

#include "base/settings.h"
#include "os/ring.h"

namespace mobius::engine {

struct RingSize {
  size_t capacity;
  size_t bytes;        // whole pages
  size_t after_bytes;  // that have flowed
  uint32_t per_chunk;
  uint32_t most;  // into one process
};

// What the sender writes anew there has left the first-level cache of the receiver, which halves
// the time per byte (the step is between 128 and 256 KiB on a Sapphire Rapids), and all of it fits
// into a second-level cache. 8 MiB into one process.
inline constexpr RingSize kWideRing = {.capacity = size_t{256} << 10,
                                        .bytes = size_t{260} << 10,
                                        .after_bytes = size_t{512} << 10,
                                        .per_chunk = 7,
                                        .most = 28};

// What is written anew has left the second-level caches, too: neither processor has to ask the
// other one for its lines, as they are in the cache that both share. On a Zen 3, whose second-level
// caches hold 512 KiB, that takes half the time per byte of 64 KiB and two thirds of 1 MiB; the
// step is between 512 and 768 KiB. 4 MiB into one process; later senders have the one above.
inline constexpr RingSize kLargeRing = {.capacity = size_t{1} << 20,
                                         .bytes = size_t{1028} << 10,
                                         .after_bytes = size_t{2} << 20,
                                         .per_chunk = 1,
                                         .most = 4};

static_assert(os::ring_footprint(kWideRing.capacity) <= kWideRing.bytes);
static_assert(os::ring_footprint(kLargeRing.capacity) <= kLargeRing.bytes);

// The one that senders want here, by the setting and, where that leaves it open, by the size of the
// second-level cache.
const RingSize& wanted_ring_size(base::RingBytes setting);

}  // namespace mobius::engine
