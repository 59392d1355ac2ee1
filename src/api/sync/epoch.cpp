// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/epoch.h>

#include <span>
#include <vector>

#include "api/check.h"
#include "engine/sync/epochs.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_epoch;
using api::check_live;
using api::check_not_null;
using base::fail;
using engine::Epochs;

namespace {

mob_status_t check_group(const char* call, const mob_rank_t* ranks, mob_rank_t count) {
  if (count < 0) return fail(MOB_ERR_ARGUMENT, "%s: a group of %d ranks", call, count);
  return count == 0 ? MOB_OK : check_not_null(call, ranks, "the list of ranks");
}

// Calls begin(object, group) with a checked group.
template <typename Begin>
mob_status_t begin_epoch(const char* call, mob_epoch_t epoch, const mob_rank_t* ranks,
                         mob_rank_t count, Begin begin) {
  Epochs* found = nullptr;
  if (const mob_status_t status = check_epoch(call, epoch, &found)) return status;
  if (const mob_status_t status = check_group(call, ranks, count)) return status;
  const std::span group(ranks, static_cast<size_t>(count));
  return api::without_exceptions(call, [&] {
    if (!found->team().services().peers.is_guest()) [[likely]] {
      return begin(*found, group);
    }
    std::vector<mob_rank_t> inner;
    for (const mob_rank_t rank : group) {
      mob_rank_t member = 0;
      const mob_status_t status = api::check_team_rank(call, found->team(), rank, &member);
      if (status != MOB_OK) return status;
      inner.push_back(found->team().map().world_rank(member));
    }
    return begin(*found, std::span<const mob_rank_t>(inner));
  });
}

}  // namespace

mob_status_t mob_epoch_create(mob_team_t team, mob_epoch_t* epoch) {
  constexpr const char* kCall = "mob_epoch_create";
  engine::Team* members = nullptr;
  if (const mob_status_t status = api::check_team(kCall, team, &members)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  // A wrong call takes part too, because the other members wait for it.
  mob_status_t mine = check_not_null(kCall, epoch, "the result");
  engine::Registry<Epochs>::Place place(engine::engine_of_object(team).epochs());
  if (mine == MOB_OK) mine = place.check(kCall);
  return api::together(kCall, *members, [&] {
    std::unique_ptr<Epochs> made;
    const mob_status_t status =
        Epochs::make(engine::engine_of_object(team).sync_services(), *members, mine, &made);
    if (status != MOB_OK) return status;
    *epoch = reinterpret_cast<mob_epoch_t>(place.fill(std::move(made)));
    return MOB_OK;
  });
}

mob_status_t mob_epoch_free(mob_epoch_t epoch) {
  constexpr const char* kCall = "mob_epoch_free";
  if (const mob_status_t status = check_live(kCall)) return status;
  if (epoch == nullptr) return MOB_OK;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  Epochs* found = nullptr;
  if (const mob_status_t status = check_epoch(kCall, epoch, &found)) return status;
  return api::together(kCall, found->team(), [&] {
    const mob_status_t status = found->release();
    if (status == MOB_OK)
      engine::engine_of_object(epoch).epochs().remove(reinterpret_cast<uintptr_t>(epoch));
    return status;
  });
}

mob_status_t mob_epoch_post(mob_epoch_t epoch, const mob_rank_t* origins, mob_rank_t count) {
  return begin_epoch("mob_epoch_post", epoch, origins, count,
                     [](Epochs& epochs, auto group) { return epochs.post(group); });
}

mob_status_t mob_epoch_start(mob_epoch_t epoch, const mob_rank_t* targets, mob_rank_t count) {
  return begin_epoch("mob_epoch_start", epoch, targets, count,
                     [](Epochs& epochs, auto group) { return epochs.start(group); });
}

mob_status_t mob_epoch_complete(mob_epoch_t epoch) {
  Epochs* found = nullptr;
  if (const mob_status_t status = check_epoch("mob_epoch_complete", epoch, &found)) return status;
  if (const mob_status_t status = api::check_may_wait("mob_epoch_complete")) return status;
  return api::without_exceptions("mob_epoch_complete", [&] { return found->complete(); });
}

mob_status_t mob_epoch_wait(mob_epoch_t epoch) {
  Epochs* found = nullptr;
  if (const mob_status_t status = check_epoch("mob_epoch_wait", epoch, &found)) return status;
  return api::without_exceptions("mob_epoch_wait", [&] { return found->wait(); });
}

mob_status_t mob_epoch_test(mob_epoch_t epoch, int* done) {
  Epochs* found = nullptr;
  if (const mob_status_t status = check_epoch("mob_epoch_test", epoch, &found)) return status;
  if (const mob_status_t status = check_not_null("mob_epoch_test", done, "the result")) {
    return status;
  }
  return api::without_exceptions("mob_epoch_test", [&] { return found->test(done); });
}

mob_status_t mob_epoch_fence(mob_epoch_t epoch) {
  Epochs* found = nullptr;
  if (const mob_status_t status = check_epoch("mob_epoch_fence", epoch, &found)) return status;
  if (const mob_status_t status = api::check_may_wait("mob_epoch_fence")) return status;
  constexpr const char* kCall = "mob_epoch_fence";
  return api::together(kCall, found->team(), [&] {
    const mob_status_t others = engine::complete_elsewhere(kCall, engine::engine_of_object(epoch));
    const mob_status_t status = found->fence();
    return status != MOB_OK ? status : others;
  });
}
