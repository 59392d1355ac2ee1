// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The sizes of the larger rings that a pair of local peers changes to once much has flowed between
// them.

#include <cstddef>
#include <cstdint>

#include "base/settings.h"
#include "os/sync/ring.h"

namespace mobius::engine {

struct RingSize {
  size_t capacity;
  size_t bytes;        // whole pages
  size_t after_bytes;  // that have flowed
  uint32_t per_chunk;
  uint32_t most;  // into one process
};

// By the time the sender overwrites a line of this ring, the line has left the receiver's
// first-level cache, which halves the time per byte (on a Sapphire Rapids the step is between 128
// and 256 KiB); and the whole ring fits into a second-level cache. At most 8 MiB for one receiver.
inline constexpr RingSize kWideRing = {.capacity = size_t{256} << 10,
                                       .bytes = size_t{260} << 10,
                                       .after_bytes = size_t{512} << 10,
                                       .per_chunk = 7,
                                       .most = 28};

// By the time the sender overwrites a line of this ring, the line has left the second-level caches,
// too, and is in the cache that both processors share. On a Zen 3, whose second-level caches hold
// 512 KiB, that takes half the time per byte of 64 KiB and two thirds of 1 MiB; the step is between
// 512 and 768 KiB. At most 4 MiB for one receiver; later senders get the size above.
inline constexpr RingSize kLargeRing = {.capacity = size_t{1} << 20,
                                        .bytes = size_t{1028} << 10,
                                        .after_bytes = size_t{2} << 20,
                                        .per_chunk = 1,
                                        .most = 4};

static_assert(os::ring_footprint(kWideRing.capacity) <= kWideRing.bytes);
static_assert(os::ring_footprint(kLargeRing.capacity) <= kLargeRing.bytes);

// The size that senders use on this machine: by the setting or, where that says auto, by the size
// of the second-level cache.
const RingSize& wanted_ring_size(base::RingBytes setting);

}  // namespace mobius::engine
