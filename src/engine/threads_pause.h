// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include "engine/engine.h"

namespace mobius::engine {

// While it lives, the library has no threads of its own: what they work with may lie on pages that
// move. Requests wait meanwhile. Not in handlers, which those threads may be running.
class ThreadsPause {
 public:
  explicit ThreadsPause(Engine& engine)
      : engine_(engine),
        network_ran_(engine.network().pause()),
        progress_ran_(engine.progress().pause()) {}
  ~ThreadsPause() { static_cast<void>(end()); }
  ThreadsPause(const ThreadsPause&) = delete;
  ThreadsPause& operator=(const ThreadsPause&) = delete;

  mob_status_t end() {
    const bool network = std::exchange(network_ran_, false);
    const bool progress = std::exchange(progress_ran_, false);
    const mob_status_t status = progress ? engine_.progress().require() : MOB_OK;
    const mob_status_t started = network ? engine_.network().start() : MOB_OK;
    return status != MOB_OK ? status : started;
  }

 private:
  Engine& engine_;
  bool network_ran_;
  bool progress_ran_;
};

}  // namespace mobius::engine
