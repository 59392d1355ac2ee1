// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "os/waiter.h"

namespace mobius::engine {

// Whether a process that is waited for, and named, has died or left.
inline bool is_lost(Engine& engine, mob_rank_t rank) {
  engine.network().watch(rank);
  return engine.has_gone(rank);
}

// What became of one that is, behind its name.
inline std::string fate_of(Engine& engine, mob_rank_t rank) {
  return engine.has_left(rank) ? "has left the job (mob_finalize)" : engine.network().fate(rank);
}

// Whether a process that is waited for has come to the end of the job, where it does nothing but
// serve others. One of another host is asked, and known to have at a later look: what
// Engine::is_ending() knows of those without asking, which is enough for collective calls, is when
// all of their host have.
inline bool is_at_end(Engine& engine, mob_rank_t rank) {
  return engine.is_here(rank) ? engine.is_ending(rank) : engine.remote_objects().is_at_end(rank);
}

// Ends a wait for nobody in particular when any process has died: it may have been the one.
class HostWatch final : public os::Watch {
 public:
  HostWatch(Engine& engine, const char* call) : engine_(engine), call_(call) {}

  mob_status_t look() override {
    engine_.network().watch_more();
    for (mob_rank_t rank = 0; rank < engine_.size(); ++rank) {
      if (engine_.is_dead(rank)) {
        return base::fail(MOB_ERR_PEER,
                          "%s: rank %d %s; if others are to change what is waited for, wait again",
                          call_, rank, engine_.network().fate(rank).c_str());
      }
    }
    return MOB_OK;
  }

 private:
  Engine& engine_;
  const char* call_;
};

// Ends a wait for one process when that one has died.
class PeerWatch final : public os::Watch {
 public:
  PeerWatch(Engine& engine, const char* call, mob_rank_t rank)
      : engine_(engine), call_(call), rank_(rank) {}

  mob_status_t look() override {
    engine_.network().watch(rank_);
    if (!engine_.is_dead(rank_)) return MOB_OK;
    return base::fail(MOB_ERR_PEER, "%s: rank %d %s", call_, rank_,
                      engine_.network().fate(rank_).c_str());
  }

 private:
  Engine& engine_;
  const char* call_;
  const mob_rank_t rank_;
};

}  // namespace mobius::engine
