// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/memory.h>

#include <algorithm>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;

mob_status_t mob_local_alloc(size_t bytes, size_t alignment, void** pointer) {
  constexpr const char* kCall = "mob_local_alloc";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (const mob_status_t status = check_not_null(kCall, pointer, "the result")) return status;
  if (const mob_status_t status = api::check_alignment(kCall, alignment)) return status;
  return api::without_exceptions(kCall, [&] {
    return engine::engine().local_heap().allocate(std::max<size_t>(bytes, 1), alignment, pointer);
  });
}

mob_status_t mob_local_realloc(void* pointer, size_t bytes, void** result) {
  constexpr const char* kCall = "mob_local_realloc";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (const mob_status_t status = check_not_null(kCall, result, "the result")) return status;
  if (pointer == nullptr) return mob_local_alloc(bytes, 0, result);
  const mob_status_t status = api::without_exceptions(kCall, [&] {
    return engine::engine().local_heap().resize(kCall, &pointer, std::max<size_t>(bytes, 1));
  });
  if (status == MOB_OK) *result = pointer;
  return status;
}

mob_status_t mob_local_free(void* pointer) {
  constexpr const char* kCall = "mob_local_free";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (pointer == nullptr) return MOB_OK;
  return api::without_exceptions(
      kCall, [&] { return engine::engine().local_heap().release(kCall, pointer); });
}
