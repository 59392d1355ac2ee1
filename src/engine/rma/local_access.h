// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The caller's own side of an operation on another host. Its memory may be read or written by
// another thread, or by the network, so memory that the caller may not access is an error of the
// call. Asking the kernel takes a quarter of a microsecond for each mapping.

#include <mobius/status.h>

#include <cstddef>

#include "engine/segment/segment.h"
#include "os/memory/pages.h"

namespace mobius::engine {

class LocalAccess {
 public:
  LocalAccess(Segment& segment, bool to_write) : segment_(segment), to_write_(to_write) {}

  // Whether the program may read, or write, all of these bytes of its own. Never touched pages of
  // files may be read in by the call.
  bool allows(const void* local, size_t bytes);
  // The same for bytes that the calling thread reads at once. Asks nothing about mappings that the
  // thread was allowed to read before: if the program took them away, its own thread faults.
  static bool allows_reading(Segment& segment, const void* local, size_t bytes);
  // The error if not; without a name of a call, for a completion that adds it.
  [[gnu::cold]] mob_status_t refuse(const void* local) const;
  [[gnu::cold]] mob_status_t refuse(const char* call, const void* local) const;

 private:
  Segment& segment_;
  const bool to_write_;
  os::AddressRange known_{};  // the last mapping found accessible, with its neighbours
};

}  // namespace mobius::engine
