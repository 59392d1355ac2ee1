// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/schedule.h>

#include <optional>

#include "api/check.h"
#include "engine/allocation/allocations.h"
#include "engine/sync/access.h"
#include "engine/sync/epochs.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using schedule::Policy;

namespace {

static_assert(static_cast<int>(Policy::kAdaptive) == MOB_SCHEDULE_ADAPTIVE - 1);
static_assert(static_cast<int>(Policy::kFifo) == MOB_SCHEDULE_FIFO - 1);
static_assert(static_cast<int>(Policy::kInterleave) == MOB_SCHEDULE_INTERLEAVE - 1);
static_assert(static_cast<int>(Policy::kGetsFirst) == MOB_SCHEDULE_GETS_FIRST - 1);
static_assert(static_cast<int>(Policy::kAggregate) == MOB_SCHEDULE_AGGREGATE - 1);

mob_status_t read_hint(const char* call, mob_schedule_t schedule, std::optional<Policy>* hint) {
  const auto number = static_cast<int>(schedule);
  if (number < MOB_SCHEDULE_DEFAULT || number > MOB_SCHEDULE_AGGREGATE) {
    return base::fail(MOB_ERR_ARGUMENT, "%s: %d is not a schedule; see mob_schedule_t", call,
                      number);
  }
  if (number != MOB_SCHEDULE_DEFAULT) *hint = static_cast<Policy>(number - 1);
  return MOB_OK;
}

}  // namespace

mob_status_t mob_mem_schedule(mob_mem_t mem, mob_schedule_t schedule) {
  constexpr const char* kCall = "mob_mem_schedule";
  const engine::Allocation* allocation = nullptr;
  std::optional<Policy> hint;
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (const mob_status_t status = api::check_handle(kCall, mem, &allocation)) return status;
  if (const mob_status_t status = read_hint(kCall, schedule, &hint)) return status;
  return api::without_exceptions(kCall, [&] {
    engine::engine_of_object(mem).allocations().set_schedule(*allocation, hint);
    return MOB_OK;
  });
}

mob_status_t mob_epoch_schedule(mob_epoch_t epoch, mob_schedule_t schedule) {
  constexpr const char* kCall = "mob_epoch_schedule";
  engine::Epochs* found = nullptr;
  std::optional<Policy> hint;
  if (const mob_status_t status = api::check_epoch(kCall, epoch, &found)) return status;
  if (const mob_status_t status = read_hint(kCall, schedule, &hint)) return status;
  return found->set_schedule(hint);
}

mob_status_t mob_access_schedule(mob_access_t access, mob_schedule_t schedule) {
  constexpr const char* kCall = "mob_access_schedule";
  engine::Access* found = nullptr;
  std::optional<Policy> hint;
  if (const mob_status_t status = api::check_access(kCall, access, &found)) return status;
  if (const mob_status_t status = read_hint(kCall, schedule, &hint)) return status;
  found->set_schedule(hint);
  return MOB_OK;
}

mob_status_t mob_context_schedule(mob_context_t context, mob_schedule_t schedule) {
  constexpr const char* kCall = "mob_context_schedule";
  std::optional<Policy> hint;
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (const mob_status_t status = read_hint(kCall, schedule, &hint)) return status;
  engine::Engine& engine = engine::engine();
  // A handle is the number of its object, cast to a pointer.
  if (const mob_status_t status = engine.completion().set_schedule(
          kCall, reinterpret_cast<uintptr_t>(context), hint ? static_cast<int>(*hint) : -1)) {
    return status;
  }
  engine.scheduler().look_at_contexts();
  return MOB_OK;
}
