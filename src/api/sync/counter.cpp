// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/counter.h>

#include "api/check.h"
#include "engine/guests.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using engine::Counters;

namespace {

Counters& counters() { return engine::engine().counters(); }

mob_status_t find_own(const char* call, mob_counter_t counter, mob_counter** found) {
  if (const mob_status_t status = check_live(call)) return status;
  *found = counters().find(call, engine::engine().peers().rank(), counter);
  return *found == nullptr ? MOB_ERR_HANDLE : MOB_OK;
}

}  // namespace

mob_status_t mob_counter_create(mob_counter_t* counter) {
  if (const mob_status_t status = check_live("mob_counter_create")) return status;
  if (const mob_status_t status = check_not_null("mob_counter_create", counter, "the result")) {
    return status;
  }
  return api::without_exceptions("mob_counter_create", [&] {
    if (const mob_status_t status = counters().create(counter)) return status;
    mob_status_t status = MOB_OK;
    engine::for_each_guest([&](engine::Engine& guest) {
      if (status == MOB_OK) status = guest.serve_counters();
    });
    if (status != MOB_OK) static_cast<void>(counters().free("mob_counter_create", *counter));
    return status;
  });
}

mob_status_t mob_counter_free(mob_counter_t counter) {
  if (const mob_status_t status = check_live("mob_counter_free")) return status;
  if (counter == nullptr) return MOB_OK;
  return api::without_exceptions("mob_counter_free",
                                 [&] { return counters().free("mob_counter_free", counter); });
}

mob_status_t mob_counter_get(mob_counter_t counter, uint64_t* value) {
  mob_counter* found = nullptr;
  if (const mob_status_t status = find_own("mob_counter_get", counter, &found)) return status;
  if (const mob_status_t status = check_not_null("mob_counter_get", value, "the result")) {
    return status;
  }
  engine::engine().waiter().poll();
  // Acquire pairs with Counters::count(): the caller sees the data of every counted operation.
  *value = found->value.load(std::memory_order_acquire);
  return MOB_OK;
}

mob_status_t mob_counter_set(mob_counter_t counter, uint64_t value) {
  mob_counter* found = nullptr;
  if (const mob_status_t status = find_own("mob_counter_set", counter, &found)) return status;
  // Sequentially consistent: also the fence before the number of sleepers is read.
  found->value.exchange(value, std::memory_order_seq_cst);
  engine::engine().waiter().ring_after_fence(engine::engine().peers().rank());
  return MOB_OK;
}

mob_status_t mob_counter_wait(mob_counter_t counter, uint64_t value, uint64_t* left) {
  mob_counter* found = nullptr;
  if (const mob_status_t status = find_own("mob_counter_wait", counter, &found)) return status;
  return api::without_exceptions("mob_counter_wait",
                                 [&] { return counters().wait(*found, value, left); });
}
