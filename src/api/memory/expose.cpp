// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/expose.h>

#include <optional>
#include <string>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using base::fail;

namespace {

constexpr uint64_t kAddressSpace = engine::Exposures::kEverything;

engine::Exposures& exposures() { return engine::engine().exposures(); }

// Only processes that are ranks themselves take part in other jobs.
bool may_have_guests() { return engine::thread_engine == nullptr; }

// Calls `move()`, which moves pages, while no thread of the library runs in another job. One that
// runs a handler is left alone: the engine refuses handlers that move memory.
template <typename Move>
mob_status_t with_guests_paused(Move move) {
  std::optional<engine::GuestsPause> pause;
  if (may_have_guests() && engine::any_guests() && !base::in_handler) pause.emplace();
  return move();
}

mob_status_t withdraw(uint64_t handle) {
  if (may_have_guests()) engine::withdraw_from_guests(handle);
  if (!exposures().has_moved(handle)) return exposures().remove(handle);
  return with_guests_paused([&] { return exposures().remove(handle); });
}

// Calls `add(handle)`, which exposes the memory.
template <typename Add>
mob_status_t expose(const char* call, mob_exposed_t* exposed, uintptr_t address, uint64_t bytes,
                    Add add) {
  uint64_t handle = 0;
  mob_status_t status = api::without_exceptions(call, [&] { return add(&handle); });
  if (status == MOB_OK && may_have_guests()) {
    status = api::without_exceptions(
        call, [&] { return engine::expose_to_guests(handle, address, bytes); });
    if (status != MOB_OK) {
      const std::string text = mob_last_error();
      static_cast<void>(withdraw(handle));
      return fail(status, "%s", text.c_str());
    }
  }
  if (status == MOB_OK) *exposed = reinterpret_cast<mob_exposed_t>(handle);
  return status;
}

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
  return expose("mob_expose", exposed, start, bytes, [&](uint64_t* handle) {
    if (flags == 0) return exposures().add(start, bytes, handle);
    return with_guests_paused([&] { return exposures().add_moved(start, bytes, handle); });
  });
}

mob_status_t mob_expose_all(mob_exposed_t* exposed) {
  if (const mob_status_t status = check_live("mob_expose_all")) return status;
  if (const mob_status_t status = check_not_null("mob_expose_all", exposed, "the result")) {
    return status;
  }
  return expose("mob_expose_all", exposed, 0, kAddressSpace,
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
  return expose("mob_expose_heap", exposed, 0, kAddressSpace, [=](uint64_t* handle) {
    return with_guests_paused([&] { return exposures().add_heap(bytes, handle); });
  });
}

mob_status_t mob_withdraw(mob_exposed_t exposed) {
  if (const mob_status_t status = check_live("mob_withdraw")) return status;
  if (exposed == nullptr) return MOB_OK;
  return api::without_exceptions("mob_withdraw",
                                 [&] { return withdraw(reinterpret_cast<uintptr_t>(exposed)); });
}
