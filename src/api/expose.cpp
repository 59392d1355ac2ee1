// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/expose.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using base::fail;

namespace {

constexpr uint64_t kAddressSpace = engine::Exposures::kEverything;

// Calls `add(handle)`, which exposes the memory.
template <typename Add>
mob_status_t expose(const char* call, mob_exposed_t* exposed, Add add) {
  uint64_t handle = 0;
  const mob_status_t status = api::without_exceptions(call, [&] { return add(&handle); });
  if (status == MOB_OK) *exposed = reinterpret_cast<mob_exposed_t>(handle);
  return status;
}

engine::Exposures& exposures() { return engine::engine().exposures(); }

}  // namespace

mob_status_t mob_expose(void* address, size_t bytes, unsigned flags, mob_exposed_t* exposed) {
  if (const mob_status_t status = check_live("mob_expose")) return status;
  if (const mob_status_t status = check_not_null("mob_expose", address, "the address")) {
    return status;
  }
  if (const mob_status_t status = check_not_null("mob_expose", exposed, "the result"))
    return status;
  if ((flags & ~MOB_EXPOSE_REMAP) != 0 || bytes == 0) {
    return fail(MOB_ERR_ARGUMENT, "mob_expose: %s",
                bytes == 0 ? "0 bytes; there is nothing to expose"
                           : "unknown flags; pass 0 or MOB_EXPOSE_REMAP");
  }
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (start >= kAddressSpace || bytes > kAddressSpace - start) {
    return fail(MOB_ERR_RANGE, "mob_expose: %zu bytes at %p leave the address space", bytes,
                address);
  }
  return expose("mob_expose", exposed, [&](uint64_t* handle) {
    if (flags == 0) return exposures().add(start, bytes, handle);
    return exposures().add_moved(start, bytes, handle);
  });
}

mob_status_t mob_expose_all(mob_exposed_t* exposed) {
  if (const mob_status_t status = check_live("mob_expose_all")) return status;
  if (const mob_status_t status = check_not_null("mob_expose_all", exposed, "the result")) {
    return status;
  }
  return expose("mob_expose_all", exposed,
                [](uint64_t* handle) { return exposures().add(0, kAddressSpace, handle); });
}

mob_status_t mob_expose_heap(size_t bytes, mob_exposed_t* exposed) {
  if (const mob_status_t status = check_live("mob_expose_heap")) return status;
  if (const mob_status_t status = check_not_null("mob_expose_heap", exposed, "the result")) {
    return status;
  }
  if (bytes == 0 || bytes >= kAddressSpace) {
    return fail(MOB_ERR_ARGUMENT,
                "mob_expose_heap: %zu bytes for the heap to grow by; pass about as many as the "
                "program will allocate",
                bytes);
  }
  return expose("mob_expose_heap", exposed,
                [=](uint64_t* handle) { return exposures().add_heap(bytes, handle); });
}

mob_status_t mob_withdraw(mob_exposed_t exposed) {
  if (const mob_status_t status = check_live("mob_withdraw")) return status;
  if (exposed == nullptr) return MOB_OK;
  return api::without_exceptions("mob_withdraw", [&] {
    return engine::engine().exposures().remove(reinterpret_cast<uintptr_t>(exposed));
  });
}
