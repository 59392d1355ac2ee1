// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/team.h>

#include <algorithm>
#include <span>
#include <vector>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_not_null;
using api::check_team;
using base::fail;
using engine::Team;

namespace {

mob_status_t check_member(const char* call, const Team& team, mob_rank_t rank) {
  if (rank >= 0 && rank < team.size()) return MOB_OK;
  return fail(MOB_ERR_RANK, "%s: rank %d is not in the team, whose ranks are 0 to %d", call, rank,
              team.size() - 1);
}

mob_status_t check_stride(const char* call, const Team& parent, mob_rank_t start, mob_rank_t stride,
                          mob_rank_t size) {
  if (stride == 0 || size < 1) {
    return fail(MOB_ERR_ARGUMENT,
                "%s: stride %d and size %d; the stride must not be 0 and the size "
                "at least 1",
                call, stride, size);
  }
  if (const mob_status_t status = check_member(call, parent, start)) return status;
  const int64_t last = start + int64_t{stride} * (size - 1);
  if (last >= 0 && last < parent.size()) return MOB_OK;
  return fail(MOB_ERR_RANK,
              "%s: %d ranks from %d in steps of %d leave the team, whose ranks are 0 "
              "to %d",
              call, size, start, stride, parent.size() - 1);
}

// Checks a list of `count` processes, each of which `check` has to accept.
template <typename Check>
mob_status_t check_list(const char* call, const mob_rank_t* ranks, mob_rank_t count, Check check) {
  if (const mob_status_t status = check_not_null(call, ranks, "the list of ranks")) return status;
  if (count < 1) {
    return fail(MOB_ERR_ARGUMENT, "%s: a team of %d ranks; it needs at least 1", call, count);
  }
  const std::span<const mob_rank_t> list(ranks, static_cast<size_t>(count));
  for (const mob_rank_t rank : list) {
    if (const mob_status_t status = check(rank)) return status;
  }
  std::vector<mob_rank_t> sorted(list.begin(), list.end());
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return MOB_OK;
  return fail(MOB_ERR_ARGUMENT, "%s: rank %d is listed twice", call, *twice);
}

mob_status_t check_list(const char* call, const Team& parent, const mob_rank_t* ranks,
                        mob_rank_t count) {
  return check_list(call, ranks, count,
                    [&](mob_rank_t rank) { return check_member(call, parent, rank); });
}

// Whether a team of this job can have the process: its shared memory, and its numbers, are the
// same.
mob_status_t check_in_job(const char* call, mob_rank_t rank) {
  if (rank < 0 || rank >= mob_size_) {
    if (const mob_status_t status = api::rank_error(call, rank)) return status;
  }
  engine::Engine& home = engine::engine();
  const engine::Peers& peers = home.peers();
  if (&engine::engine_of(rank).engine == &home && peers.is_connected(rank) &&
      !peers.is_foreign(rank)) {
    return MOB_OK;
  }
  return fail(MOB_ERR_RANK,
              "%s: rank %d is not a process of this job that is connected with this one; "
              "mob_bridge_merge() makes teams with those of other jobs",
              call, rank);
}

}  // namespace

// In all three splits a wrong call takes part too, because the other members wait for it.

mob_status_t mob_team_split(mob_team_t parent, int colour, int key, mob_team_t* team) {
  constexpr const char* kCall = "mob_team_split";
  Team* from = nullptr;
  if (const mob_status_t status = check_team(kCall, parent, &from)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  uint64_t handle = 0;
  const mob_status_t status = api::together(kCall, *from, [&] {
    const mob_status_t mine = check_not_null(kCall, team, "the result");
    return engine::engine_of_object(parent).teams().split(kCall, *from, mine, colour, key, &handle);
  });
  if (status == MOB_OK) *team = api::team_handle(handle);
  return status;
}

mob_status_t mob_team_split_strided(mob_team_t parent, mob_rank_t start, mob_rank_t stride,
                                    mob_rank_t size, mob_team_t* team) {
  constexpr const char* kCall = "mob_team_split_strided";
  Team* from = nullptr;
  if (const mob_status_t status = check_team(kCall, parent, &from)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  uint64_t handle = 0;
  const mob_status_t status = api::together(kCall, *from, [&] {
    mob_status_t mine = check_not_null(kCall, team, "the result");
    if (mine == MOB_OK) mine = check_stride(kCall, *from, start, stride, size);
    std::vector<mob_rank_t> ranks(mine == MOB_OK ? static_cast<size_t>(size) : 0);
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i] = start + static_cast<mob_rank_t>(i) * stride;
    }
    return engine::engine_of_object(parent).teams().select(kCall, *from, mine, ranks, &handle);
  });
  if (status == MOB_OK) *team = api::team_handle(handle);
  return status;
}

mob_status_t mob_team_split_list(mob_team_t parent, const mob_rank_t* ranks, mob_rank_t count,
                                 mob_team_t* team) {
  constexpr const char* kCall = "mob_team_split_list";
  Team* from = nullptr;
  if (const mob_status_t status = check_team(kCall, parent, &from)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  uint64_t handle = 0;
  const mob_status_t status = api::together(kCall, *from, [&] {
    mob_status_t mine = check_not_null(kCall, team, "the result");
    if (mine == MOB_OK) mine = check_list(kCall, *from, ranks, count);
    const std::span<const mob_rank_t> list(ranks, mine == MOB_OK ? static_cast<size_t>(count) : 0);
    return engine::engine_of_object(parent).teams().select(kCall, *from, mine, list, &handle);
  });
  if (status == MOB_OK) *team = api::team_handle(handle);
  return status;
}

mob_status_t mob_team_gather(const mob_rank_t* ranks, mob_rank_t count, mob_exchange_t exchange,
                             void* argument, mob_team_t* team) {
  constexpr const char* kCall = "mob_team_gather";
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (const mob_status_t status = check_not_null(kCall, team, "the result")) return status;
  if (exchange == nullptr) return fail(MOB_ERR_ARGUMENT, "%s: the exchange is null", kCall);
  uint64_t handle = 0;
  const mob_status_t status = api::without_exceptions(kCall, [&] {
    engine::Engine& engine = engine::engine();
    const auto check = [&](mob_rank_t rank) { return check_in_job(kCall, rank); };
    if (const mob_status_t wrong = check_list(kCall, ranks, count, check)) return wrong;
    const std::span<const mob_rank_t> list(ranks, static_cast<size_t>(count));
    if (std::ranges::find(list, engine.peers().rank()) == list.end()) {
      return fail(MOB_ERR_ARGUMENT, "%s: rank %d calls it and is not listed", kCall,
                  engine.peers().rank());
    }
    return engine.teams().gather(kCall, list, exchange, argument, &handle);
  });
  if (status == MOB_OK) *team = api::team_handle(handle);
  return status;
}

namespace {

// For calls that the living members of a team make while others may have died.
mob_status_t check_can_agree(const char* call, mob_team_t team, Team** found) {
  if (const mob_status_t status = check_team(call, team, found)) return status;
  if (const mob_status_t status = api::check_may_wait(call)) return status;
  if (!(*found)->spans_hosts()) return MOB_OK;
  return fail(MOB_ERR_STATE,
              "%s: this team has members on several hosts; those of a team on one host can agree "
              "on who is alive",
              call);
}

}  // namespace

mob_status_t mob_team_shrink(mob_team_t team, mob_team_t* survivors) {
  constexpr const char* kCall = "mob_team_shrink";
  Team* from = nullptr;
  if (const mob_status_t status = check_can_agree(kCall, team, &from)) return status;
  uint64_t handle = 0;
  const mob_status_t status = api::without_exceptions(kCall, [&] {
    const mob_status_t mine = check_not_null(kCall, survivors, "the result");
    return engine::engine_of_object(team).teams().shrink(kCall, *from, mine, &handle);
  });
  if (status == MOB_OK) *survivors = api::team_handle(handle);
  return status;
}

mob_status_t mob_team_agree(mob_team_t team, uint32_t* flags) {
  constexpr const char* kCall = "mob_team_agree";
  Team* members = nullptr;
  if (const mob_status_t status = check_can_agree(kCall, team, &members)) return status;
  // The others wait for this member.
  const mob_status_t mine = check_not_null(kCall, flags, "flags");
  engine::Consensus::Decision decision;
  const mob_status_t status =
      members->consensus().decide(kCall, mine == MOB_OK ? *flags : 0, &decision);
  if (mine != MOB_OK) return check_not_null(kCall, flags, "flags");
  if (status == MOB_OK) *flags = decision.flags;
  return status;
}

mob_status_t mob_team_free(mob_team_t team) {
  if (const mob_status_t status = api::check_live("mob_team_free")) return status;
  if (const mob_status_t status = api::check_may_wait("mob_team_free")) return status;
  if (team == MOB_TEAM_NONE) return MOB_OK;
  if (team == MOB_TEAM_WORLD) {
    return fail(MOB_ERR_ARGUMENT,
                "mob_team_free: the world team cannot be freed; mob_finalize() "
                "frees it");
  }
  Team* found = nullptr;
  if (const mob_status_t status = check_team("mob_team_free", team, &found)) return status;
  // After a death the team's objects can neither be freed nor used.
  if (found->users() != 0 && !found->is_broken()) {
    return fail(
        MOB_ERR_STATE,
        "mob_team_free: %d objects of this team are live (allocations, heaps, epochs, access "
        "objects, mutexes); free them first",
        found->users());
  }
  return api::together("mob_team_free", *found, [&] {
    return engine::engine_of_object(team).teams().release(api::team_number(team));
  });
}

mob_rank_t mob_team_rank(mob_team_t team) {
  Team* found = nullptr;
  if (const mob_status_t status = check_team("mob_team_rank", team, &found)) return status;
  return found->rank();
}

mob_rank_t mob_team_size(mob_team_t team) {
  Team* found = nullptr;
  if (const mob_status_t status = check_team("mob_team_size", team, &found)) return status;
  return found->size();
}

mob_rank_t mob_team_number(mob_team_t team, mob_rank_t rank) {
  Team* found = nullptr;
  if (const mob_status_t status = check_team("mob_team_number", team, &found)) return status;
  if (const mob_status_t status = check_member("mob_team_number", *found, rank)) return status;
  return api::number_of(*found, rank);
}

mob_status_t mob_team_translate(mob_team_t from, mob_rank_t rank, mob_team_t to,
                                mob_rank_t* result) {
  constexpr const char* kCall = "mob_team_translate";
  Team* source = nullptr;
  Team* target = nullptr;
  if (const mob_status_t status = check_team(kCall, from, &source)) return status;
  if (const mob_status_t status = check_team(kCall, to, &target)) return status;
  if (const mob_status_t status = check_not_null(kCall, result, "the result")) return status;
  if (const mob_status_t status = check_member(kCall, *source, rank)) return status;
  *result = api::member_of(*target, api::number_of(*source, rank));
  return MOB_OK;
}
