// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/dynamic.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "api/check.h"
#include "job/bootstrap/local_protocol.h"
#include "job/spawn_request.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_not_null;
using api::check_team;
using base::fail;
using engine::Bridge;
using engine::Bridges;
using engine::Team;

namespace {

uint64_t bridge_number(mob_bridge_t bridge) { return reinterpret_cast<uintptr_t>(bridge); }
mob_bridge_t bridge_handle(uint64_t number) { return reinterpret_cast<mob_bridge_t>(number); }

mob_status_t check_bridge(const char* call, mob_bridge_t bridge, Bridge** result) {
  if (const mob_status_t status = api::check_live(call)) return status;
  *result = engine::engine_of_handle(bridge_number(bridge)).bridges().find(bridge_number(bridge));
  if (*result != nullptr) return MOB_OK;
  return fail(MOB_ERR_HANDLE, "%s: %p is not a live bridge (disconnected before, or never made)",
              call, static_cast<void*>(bridge));
}

// Whether this job can get more processes, or its launcher starts some for it.
mob_status_t check_can_grow(const char* call) {
  job::Job& job = engine::engine().peers().job();
  if (!job.can_grow()) {
    if (!job.launches()) {
      return fail(
          MOB_ERR_STATE,
          "%s: this job is on several hosts, and its launcher starts no more processes; "
          "`mobius run --hosts`, prterun and Open MPI's mpirun do. Or start another job and "
          "connect with it (mob_port_open)",
          call);
    }
    if (!engine::engine().instrumentation().hooked()) return MOB_OK;
    return fail(MOB_ERR_STATE, "%s: not with hooks in a job on several hosts; unset MOBIUS_HOOKS",
                call);
  }
  if (job.host().control().header.window_bytes.load(std::memory_order_relaxed) != 0) return MOB_OK;
  return fail(MOB_ERR_STATE, "%s: the ranks of this job are threads; a job of processes can spawn",
              call);
}

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

// The root's environment with the changes, without its place in the job.
std::vector<std::string> environment_of(const char* const* changes) {
  std::vector<std::string> result;
  const auto set = [&](const char* entry) {
    std::erase_if(result,
                  [&](const std::string& earlier) { return name_of(earlier) == name_of(entry); });
    result.emplace_back(entry);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = name_of(*entry);
    if (name != job::kJobVariable && name != job::kRankVariable && name != job::kParentVariable) {
      result.emplace_back(*entry);
    }
  }
  for (; changes != nullptr && *changes != nullptr; ++changes) set(*changes);
  return result;
}

mob_status_t find_folder(const char* call, const char* wanted, std::string* folder) {
  char* const found = realpath(wanted != nullptr ? wanted : ".", nullptr);
  if (found == nullptr) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "%s: the folder %s cannot be used", call,
                            wanted != nullptr ? wanted : ".");
  }
  *folder = found;
  std::free(found);
  return MOB_OK;
}

// The host of each process.
mob_status_t find_hosts(const char* call, mob_rank_t count, const mob_rank_t* beside,
                        Bridges::Wish* wish) {
  engine::Peers& peers = engine::engine().peers();
  for (mob_rank_t i = 0; i < count; ++i) {
    const mob_rank_t rank = beside != nullptr ? beside[i] : peers.rank();
    if (rank < 0 || rank >= peers.bound() || !peers.is_connected(rank)) {
      return fail(MOB_ERR_RANK, "%s: process %d is to start beside rank %d, which is not there",
                  call, i, rank);
    }
    wish->beside.push_back(rank);
    wish->hosts.push_back(peers.job().place_of(rank).host);
  }
  return MOB_OK;
}

// The root's arguments.
mob_status_t make_wish(const char* call, const char* program, const char* const* argv,
                       mob_rank_t count, const mob_spawn_options_t& options, Bridges::Wish* wish) {
  if (const mob_status_t status = check_not_null(call, program, "the program")) return status;
  if (count < 1) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d processes; it starts 1 at least", call, count);
  }
  int problem = 0;
  const std::string path = job::find_executable(program, getenv("PATH"), &problem);
  if (problem != 0) {
    return fail(MOB_ERR_SYSTEM, "%s: the program %s cannot be started: %s%s", call, program,
                std::strerror(problem),
                std::strchr(program, '/') == nullptr ? " (it was looked for in PATH)" : "");
  }
  job::SpawnRequest& request = wish->request;
  request.path = path;
  if (const mob_status_t status = find_folder(call, options.folder, &request.folder)) return status;
  request.arguments.emplace_back(program);
  for (; argv != nullptr && *argv != nullptr; ++argv) request.arguments.emplace_back(*argv);
  request.environment = environment_of(options.environment);
  if (const mob_status_t status = find_hosts(call, count, options.beside, wish)) {
    return status;
  }
  wish->count = count;
  wish->least = (options.flags & MOB_SPAWN_SOME) != 0 ? 1 : count;
  return MOB_OK;
}

}  // namespace

mob_status_t mob_spawn(mob_team_t team, const char* program, const char* const* argv,
                       mob_rank_t count, const mob_spawn_options_t* options,
                       mob_bridge_t* children) {
  constexpr const char* kCall = "mob_spawn";
  Team* parents = nullptr;
  if (const mob_status_t status = check_team(kCall, team, &parents)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (const mob_status_t status = check_can_grow(kCall)) return status;
  const mob_spawn_options_t chosen = options != nullptr ? *options : mob_spawn_options_t{};
  uint64_t handle = 0;
  // A wrong call takes part too, because the other members wait for it.
  const mob_status_t status = api::together(kCall, *parents, [&] {
    mob_status_t mine = check_not_null(kCall, children, "the result");
    if (mine == MOB_OK && parents->services().peers.is_guest()) {
      mine = fail(MOB_ERR_STATE,
                  "%s: the team is of another job, with which this one has connected", kCall);
    }
    if (mine == MOB_OK && (chosen.root < 0 || chosen.root >= parents->size())) {
      mine =
          fail(MOB_ERR_RANK, "%s: rank %d is to start the processes; the team's ranks are 0 to %d",
               kCall, chosen.root, parents->size() - 1);
    }
    if (mine == MOB_OK && (chosen.flags & ~MOB_SPAWN_SOME) != 0) {
      mine = fail(MOB_ERR_ARGUMENT, "%s: flags %#x; MOB_SPAWN_SOME is the only one", kCall,
                  chosen.flags);
    }
    Bridges::Wish wish;
    if (mine == MOB_OK && parents->rank() == chosen.root) {
      mine = make_wish(kCall, program, argv, count, chosen, &wish);
    }
    if (!engine::engine().peers().job().can_grow()) {
      return engine::spawn_by_launcher(kCall, *parents, chosen.root, mine, wish, &handle);
    }
    return engine::engine_of_object(team).bridges().spawn(kCall, *parents, chosen.root, mine, wish,
                                                          &handle);
  });
  engine::learn_numbers();
  if (status == MOB_OK) *children = bridge_handle(handle);
  return status;
}

mob_bridge_t mob_parent() {
  if (api::check_live("mob_parent") != MOB_OK) return MOB_BRIDGE_NONE;
  const uint64_t spawner = engine::parent_by_launcher.load(std::memory_order_relaxed);
  return bridge_handle(spawner != 0 ? spawner : engine::engine().bridges().parent());
}

mob_rank_t mob_bridge_others(mob_bridge_t bridge, mob_rank_t* numbers) {
  Bridge* found = nullptr;
  if (const mob_status_t status = check_bridge("mob_bridge_others", bridge, &found)) return status;
  const mob_rank_t begin = found->is_child ? 0 : found->parents;
  const mob_rank_t count = found->is_child ? found->parents : found->children;
  for (mob_rank_t i = 0; numbers != nullptr && i < count; ++i) {
    numbers[i] = api::number_of(*found->all, begin + i);
  }
  return count;
}

mob_status_t mob_bridge_merge(mob_bridge_t bridge, int children_first, mob_team_t* team) {
  constexpr const char* kCall = "mob_bridge_merge";
  Bridge* found = nullptr;
  if (const mob_status_t status = check_bridge(kCall, bridge, &found)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  uint64_t handle = 0;
  const mob_status_t status = api::together(kCall, *found->all, [&] {
    const mob_status_t mine = check_not_null(kCall, team, "the result");
    return engine::engine_of_object(bridge).bridges().merge(kCall, *found, mine,
                                                            children_first != 0, &handle);
  });
  if (status == MOB_OK) *team = api::team_handle(handle);
  return status;
}

mob_status_t mob_bridge_disconnect(mob_bridge_t bridge) {
  constexpr const char* kCall = "mob_bridge_disconnect";
  if (const mob_status_t status = api::check_live(kCall)) return status;
  if (const mob_status_t status = api::check_may_wait(kCall)) return status;
  if (bridge == MOB_BRIDGE_NONE) return MOB_OK;
  Bridge* found = nullptr;
  if (const mob_status_t status = check_bridge(kCall, bridge, &found)) return status;
  return api::without_exceptions(kCall, [&] {
    // Messages to a process that is gone could not be sent any more.
    engine::Engine& engine = engine::engine_of_object(bridge);
    static_cast<void>(engine.messages().flush_living(engine::Whose::kEveryones));
    if (engine.peers().is_guest() && bridge_number(bridge) == engine.bridges().parent()) {
      return engine::disconnect_guest(kCall, bridge_number(bridge));
    }
    return engine.bridges().disconnect(kCall, bridge_number(bridge));
  });
}
