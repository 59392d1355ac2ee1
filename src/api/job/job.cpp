// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.h"

#include <mobius/job.h>

#include <unistd.h>

#include "api/check.h"
#include "api/version.h"
#include "base/log.h"
#include "engine/guests.h"
#include "os/file/standard_descriptors.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_live;
using api::check_not_null;
using api::check_rank;
using base::fail;
using engine::engine_start;
using engine::engine_stop;

namespace {

mob_status_t check_not_joined(const char* call) {
  switch (engine::state()) {
    case engine::State::kLive:
      return fail(MOB_ERR_STATE, "%s: called twice", call);
    case engine::State::kAfter:
      return fail(MOB_ERR_STATE, "%s: called after mob_finalize(); a process joins a job only once",
                  call);
    case engine::State::kForked:
      return fail(MOB_ERR_STATE, "%s: called in a child of fork() of a process that is in a job",
                  call);
    case engine::State::kBefore:
      break;
  }
  return MOB_OK;
}

}  // namespace

mob_status_t mob_init() {
  if (const mob_status_t status = check_not_joined("mob_init")) return status;
  os::open_standard_descriptors();
  return api::without_exceptions("mob_init", [] { return engine_start(); });
}

mob_status_t mob_init_mpi(const void* communicator) {
  if (const mob_status_t status = check_not_joined("mob_init_mpi")) return status;
  os::open_standard_descriptors();
  return api::without_exceptions("mob_init_mpi", [&] { return engine_start(&communicator); });
}

mob_status_t mob_finalize() {
  if (const mob_status_t status = check_live("mob_finalize")) return status;
  if (const mob_status_t status = api::check_may_wait("mob_finalize")) return status;
  return api::without_exceptions("mob_finalize", [] { return engine_stop(); });
}

int mob_initialized() { return engine::state() == engine::State::kLive ? 1 : 0; }

mob_rank_t mob_rank() {
  if (const mob_status_t status = check_live("mob_rank")) return status;
  return engine::engine().peers().rank();
}

mob_rank_t mob_size() {
  if (const mob_status_t status = check_live("mob_size")) return status;
  return engine::engine().peers().size();
}

mob_rank_t mob_host_size() {
  if (const mob_status_t status = check_live("mob_host_size")) return status;
  return engine::engine().peers().host().size();
}

mob_rank_t mob_host_rank() {
  if (const mob_status_t status = check_live("mob_host_rank")) return status;
  const job::HostGroup& host = engine::engine().peers().host();
  return host.index() - host.first();
}

int mob_is_host_mate(mob_rank_t rank) {
  if (const mob_status_t status = check_rank("mob_is_host_mate", rank)) return status;
  const engine::EngineOf of = engine::engine_of(rank);
  return of.engine.peers().is_here(of.rank) ? 1 : 0;
}

mob_status_t mob_host_mate(mob_rank_t host_rank, mob_rank_t* rank) {
  constexpr const char* kCall = "mob_host_mate";
  if (const mob_status_t status = check_live(kCall)) return status;
  const mob_rank_t local_size = engine::engine().peers().host().size();
  if (host_rank < 0 || host_rank >= local_size) {
    return base::fail(MOB_ERR_RANK, "%s: position %d; this host has processes 0 to %d", kCall,
                      host_rank, local_size - 1);
  }
  if (const mob_status_t status = check_not_null(kCall, rank, "the result")) return status;
  *rank =
      engine::engine().peers().job().rank_at(engine::engine().peers().host().first() + host_rank);
  return MOB_OK;
}

void mob_abort(int exit_code, const char* reason) {
  const int code = exit_code >= 0 && exit_code <= 255 ? exit_code : 1;
  if (code != 0) {
    base::log(base::LogLevel::kError, "mob_abort(%d): %s", code,
              reason != nullptr ? reason : "no reason given");
  }
  job::request_abort(environ, code, reason != nullptr ? reason : "mob_abort()");
  _exit(code);
}

const char* mob_version() { return api::kVersion; }
