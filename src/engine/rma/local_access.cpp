// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/local_access.h"

#include <cstdint>

#include "base/status.h"

namespace mobius::engine {
namespace {

bool allows(Segment& segment, const void* local, size_t bytes, bool to_write,
            os::AddressRange* known) {
  const auto start = reinterpret_cast<uintptr_t>(local);
  const bool is_known =
      start - known->start < known->end - known->start && bytes <= known->end - start;
  if (bytes == 0 || is_known ||
      segment.find_here(segment.peers().rank(), start, bytes) != nullptr) {
    return true;
  }
  os::AddressRange around{};
  if (!os::is_accessible(start, bytes, to_write, &around)) return false;
  *known = around;
  return true;
}

}  // namespace

bool LocalAccess::allows(const void* local, size_t bytes) {
  return engine::allows(segment_, local, bytes, to_write_, &known_);
}

bool LocalAccess::allows_reading(Segment& segment, const void* local, size_t bytes) {
  static thread_local os::AddressRange known{};
  return engine::allows(segment, local, bytes, false, &known);
}

mob_status_t LocalAccess::refuse(const void* local) const {
  return base::fail(MOB_ERR_ARGUMENT, "the caller's memory at %p is not mapped, or may not be %s",
                    local, to_write_ ? "written" : "read");
}

mob_status_t LocalAccess::refuse(const char* call, const void* local) const {
  return base::name_call(call, refuse(local));
}

}  // namespace mobius::engine
