// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/ring_size.h"

#include "os/cpu/topology.h"

namespace mobius::engine {

const RingSize& wanted_ring_size(base::RingBytes setting) {
  switch (setting) {
    case base::RingBytes::k256K:
      return kWideRing;
    case base::RingBytes::k1M:
      return kLargeRing;
    case base::RingBytes::kAuto:
      break;
  }
  // A ring twice as large as a second-level cache. For larger caches a ring of 256 KiB was faster.
  const size_t cache = os::second_level_cache_bytes();
  return cache != 0 && cache <= kLargeRing.capacity / 2 ? kLargeRing : kWideRing;
}

}  // namespace mobius::engine
