// SPDX-License-Identifier: BSD-3-Clause

// Teams and contexts.

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "active_sets.h"
#include "front.h"

extern "C" {
shmem_team_ shmem_team_world_ = {};
shmem_team_ shmem_team_shared_ = {};
shmem_context_ shmem_ctx_default_ = {};
}

namespace mobius::shmem {
namespace {

std::mutex contexts_mutex;
std::vector<shmem_ctx_t> contexts;  // live ones of the program
std::mutex teams_mutex;
std::vector<shmem_team_t> teams;  // live ones of the program
ContextRest default_rest = {};

// Tells a team where its PEs are in the world.
void describe(shmem_team_* team, const char* call) {
  team->rank = mob_team_rank(team->engine);
  team->size = mob_team_size(team->engine);
  std::vector<int> pes(static_cast<size_t>(team->size));
  for (int i = 0; i < team->size; ++i) {
    mob_rank_t rank = 0;
    check(mob_team_translate(team->engine, i, MOB_TEAM_WORLD, &rank), call);
    pes[static_cast<size_t>(i)] = rank;
  }
  team->start = pes[0];
  team->stride = team->size > 1 ? pes[1] - pes[0] : 1;
  team->pes = nullptr;
  for (int i = 0; i < team->size; ++i) {
    if (pes[static_cast<size_t>(i)] == team->start + i * team->stride) continue;
    team->pes = new int[pes.size()];
    std::ranges::copy(pes, team->pes);
    return;
  }
}

void open_world(const char* call) {
  shmem_team_world_ = {MOB_TEAM_WORLD, mob_rank(), mob_size(), 0, 1, nullptr, {0}};
  shmem_team_shared_ = shmem_team_world_;
  if (shmem_state_.is_one_host != 0) return;
  mob_rank_t first = 0;
  check(mob_host_mate(0, &first), call);
  check(mob_team_split(MOB_TEAM_WORLD, first, mob_rank(), &shmem_team_shared_.engine), call);
  describe(&shmem_team_shared_, call);
}

void make(mob_team_t engine, const shmem_team_config_t* config, long mask, shmem_team_t* team,
          const char* call) {
  *team = SHMEM_TEAM_INVALID;
  if (engine == MOB_TEAM_NONE) return;
  auto made = std::make_unique<shmem_team_>();
  made->engine = engine;
  if (config != nullptr && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) made->config = *config;
  describe(made.get(), call);
  *team = made.release();
  const std::lock_guard lock(teams_mutex);
  teams.push_back(*team);
}

void fill(shmem_ctx_t ctx, ContextRest* rest) {
  const shmem_team_& team = *rest->team;
  ctx->n_pes = team.pes == nullptr ? team.size : 0;
  ctx->start = team.start;
  ctx->stride = team.stride;
  ctx->more = rest;
}

int create_context(shmem_team_t team, shmem_ctx_t* ctx, const char* call) {
  *ctx = SHMEM_CTX_INVALID;
  if (!is_valid(team, call)) return 1;
  mob_context_t engine = nullptr;
  if (mob_context_create(&engine) != MOB_OK) return 1;
  auto rest = std::make_unique<ContextRest>(ContextRest{engine, team});
  auto made = std::make_unique<shmem_context_>();
  fill(made.get(), rest.release());
  *ctx = made.release();
  const std::lock_guard lock(contexts_mutex);
  contexts.push_back(*ctx);
  return 0;
}

void free_context(shmem_ctx_t ctx, const char* call) {
  auto* const rest = static_cast<ContextRest*>(ctx->more);
  check(mob_context_free(rest->engine), call);
  delete rest;
  delete ctx;
}

}  // namespace

void check_team(shmem_team_t team, const char* call) {
  check_started(call);
  if (team == SHMEM_TEAM_INVALID) die(call, "team is SHMEM_TEAM_INVALID");
  bool is_live = true;
  if (debugs() && team != SHMEM_TEAM_WORLD && team != SHMEM_TEAM_SHARED) {
    const std::lock_guard lock(teams_mutex);
    is_live = std::ranges::find(teams, team) != teams.end();
  }
  if (!is_live || team->engine == nullptr) {
    die(call, "team %p is not live", static_cast<void*>(team));
  }
}

void check_context(shmem_ctx_t ctx, const char* call) {
  if (ctx == SHMEM_CTX_INVALID) die(call, "ctx is SHMEM_CTX_INVALID");
  if (!debugs()) return;
  const std::lock_guard lock(contexts_mutex);
  if (std::ranges::find(contexts, ctx) == contexts.end()) {
    die(call, "ctx %p is not live", static_cast<void*>(ctx));
  }
}

bool is_valid(shmem_team_t team, const char* call) {
  check_started(call);
  if (team == SHMEM_TEAM_INVALID) return false;
  if (debugs()) check_team(team, call);
  return true;
}

bool is_valid(shmem_ctx_t ctx, const char* call) {
  check_started(call);
  if (ctx == SHMEM_CTX_INVALID) return false;
  if (debugs() && ctx != SHMEM_CTX_DEFAULT) check_context(ctx, call);
  return true;
}

void open_teams(const char* call) {
  open_world(call);
  default_rest = {MOB_CONTEXT_DEFAULT, SHMEM_TEAM_WORLD};
  fill(&shmem_ctx_default_, &default_rest);
}

// Frees contexts that the program did not destroy. Its teams are left to the end of the job,
// because freeing them is collective and the members may have left different ones.
void close_contexts(const char* call) {
  const std::lock_guard lock(contexts_mutex);
  for (shmem_ctx_t each : contexts) free_context(each, call);
  contexts.clear();
}

void close_teams() { forget_active_sets(); }

}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

SHMEM_TWIN(int, team_my_pe, (shmem_team_t team)) {
  return is_valid(team, "shmem_team_my_pe") ? team->rank : -1;
}

SHMEM_TWIN(int, team_n_pes, (shmem_team_t team)) {
  return is_valid(team, "shmem_team_n_pes") ? team->size : -1;
}

SHMEM_TWIN(int, team_get_config,
           (shmem_team_t team, long config_mask, shmem_team_config_t* config)) {
  if (!is_valid(team, "shmem_team_get_config")) return 1;
  if (config_mask == 0) return 0;
  if (config == nullptr || config_mask != SHMEM_TEAM_NUM_CONTEXTS) return 1;
  *config = team->config;
  return 0;
}

SHMEM_TWIN(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) {
  constexpr const char* kCall = "shmem_team_translate_pe";
  if (!is_valid(src_team, kCall) || !is_valid(dest_team, kCall)) return -1;
  if (src_pe < 0 || src_pe >= src_team->size) return -1;
  mob_rank_t found = -1;
  check(mob_team_translate(src_team->engine, src_pe, dest_team->engine, &found), kCall);
  return found;
}

SHMEM_TWIN(int, team_split_strided,
           (shmem_team_t parent_team, int start, int stride, int size,
            const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team)) {
  constexpr const char* kCall = "shmem_team_split_strided";
  *new_team = SHMEM_TEAM_INVALID;
  if (!is_valid(parent_team, kCall)) return 1;
  const auto last = start + static_cast<int64_t>(stride) * (static_cast<int64_t>(size) - 1);
  const int64_t pes = parent_team->size;
  if (size < 1 || start < 0 || start >= pes || last < 0 || last >= pes ||
      (stride == 0 && size > 1)) {
    return 1;
  }
  mob_team_t engine = MOB_TEAM_NONE;
  check(mob_team_split_strided(parent_team->engine, start, stride != 0 ? stride : 1, size, &engine),
        kCall);
  make(engine, config, config_mask, new_team, kCall);
  return 0;
}

SHMEM_TWIN(int, team_split_2d,
           (shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config,
            long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config,
            long yaxis_mask, shmem_team_t* yaxis_team)) {
  constexpr const char* kCall = "shmem_team_split_2d";
  *xaxis_team = SHMEM_TEAM_INVALID;
  *yaxis_team = SHMEM_TEAM_INVALID;
  if (!is_valid(parent_team, kCall) || xrange < 1) return 1;
  const int width = std::min(xrange, parent_team->size);
  const int x = parent_team->rank % width;
  const int y = parent_team->rank / width;
  mob_team_t engine = MOB_TEAM_NONE;
  check(mob_team_split(parent_team->engine, y, x, &engine), kCall);
  make(engine, xaxis_config, xaxis_mask, xaxis_team, kCall);
  check(mob_team_split(parent_team->engine, x, y, &engine), kCall);
  make(engine, yaxis_config, yaxis_mask, yaxis_team, kCall);
  return 0;
}

SHMEM_TWIN(void, team_destroy, (shmem_team_t team)) {
  constexpr const char* kCall = "shmem_team_destroy";
  check_started(kCall);
  if (team == SHMEM_TEAM_INVALID) return;
  if (team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED) {
    die(kCall, "a predefined team cannot be destroyed");
  }
  check_team(team, kCall);
  {
    const std::lock_guard lock(contexts_mutex);
    std::erase_if(contexts, [&](shmem_ctx_t each) {
      const bool is_of_team = static_cast<ContextRest*>(each->more)->team == team;
      if (is_of_team) free_context(each, kCall);
      return is_of_team;
    });
  }
  {
    const std::lock_guard lock(teams_mutex);
    std::erase(teams, team);
  }
  check(mob_team_free(team->engine), kCall);
  delete[] team->pes;
  delete team;
}

SHMEM_TWIN(int, team_create_ctx, (shmem_team_t team, long, shmem_ctx_t* ctx)) {
  return create_context(team, ctx, "shmem_team_create_ctx");
}

SHMEM_TWIN(int, ctx_create, (long, shmem_ctx_t* ctx)) {
  return create_context(SHMEM_TEAM_WORLD, ctx, "shmem_ctx_create");
}

SHMEM_TWIN(void, ctx_destroy, (shmem_ctx_t ctx)) {
  constexpr const char* kCall = "shmem_ctx_destroy";
  check_started(kCall);
  if (ctx == SHMEM_CTX_INVALID) return;
  if (ctx == SHMEM_CTX_DEFAULT) die(kCall, "the default context cannot be destroyed");
  {
    const std::lock_guard lock(contexts_mutex);
    if (std::erase(contexts, ctx) == 0) {
      die(kCall, "ctx %p is not live", static_cast<void*>(ctx));
    }
  }
  free_context(ctx, kCall);
}

SHMEM_TWIN(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team)) {
  *team = SHMEM_TEAM_INVALID;
  if (!is_valid(ctx, "shmem_ctx_get_team")) return 1;
  *team = static_cast<ContextRest*>(ctx->more)->team;
  return 0;
}

// Operations to other hosts are batched in any case (docs/scheduler.md).
SHMEM_TWIN(void, ctx_session_start,
           (shmem_ctx_t ctx, long, const shmem_ctx_session_config_t*, long)) {
  static_cast<void>(is_valid(ctx, "shmem_ctx_session_start"));
}
SHMEM_TWIN(void, ctx_session_stop, (shmem_ctx_t ctx)) {
  static_cast<void>(is_valid(ctx, "shmem_ctx_session_stop"));
}
