// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/context.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;

namespace {

engine::Completion& completion() { return engine::engine().completion(); }

// A handle is the number of its object, cast to a pointer.
uint64_t number_of(mob_context_t context) { return reinterpret_cast<uintptr_t>(context); }

}  // namespace

mob_status_t mob_context_create(mob_context_t* context) {
  if (const mob_status_t status = check_live("mob_context_create")) return status;
  if (const mob_status_t status = check_not_null("mob_context_create", context, "the result")) {
    return status;
  }
  return api::without_exceptions("mob_context_create", [&] {
    uint64_t number = 0;
    const mob_status_t status = completion().create_context(&number);
    if (status == MOB_OK) *context = reinterpret_cast<mob_context_t>(number);
    return status;
  });
}

mob_status_t mob_context_free(mob_context_t context) {
  if (const mob_status_t status = check_live("mob_context_free")) return status;
  if (context == MOB_CONTEXT_DEFAULT) return MOB_OK;
  return api::without_exceptions("mob_context_free",
                                 [&] { return completion().free_context(number_of(context)); });
}

mob_status_t mob_context_use(mob_context_t context) {
  if (const mob_status_t status = check_live("mob_context_use")) return status;
  return completion().use_context(number_of(context));
}

mob_context_t mob_context_current() {
  return reinterpret_cast<mob_context_t>(engine::Completion::current_context());
}
