// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <thread>

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

  // Starts them again; tries for a while where the system has no room for a thread. Without them
  // others are served only while this process is in a call of the library.
  mob_status_t end() noexcept {
    constexpr int kTries = 100;
    constexpr auto kBetween = std::chrono::milliseconds(1);
    mob_status_t status = resume();
    for (int tries = 1; status != MOB_OK && tries < kTries; ++tries) {
      std::this_thread::sleep_for(kBetween);
      status = resume();
    }
    network_ran_ = progress_ran_ = false;
    return status;
  }

 private:
  mob_status_t resume() noexcept {
    if (progress_ran_) {
      if (const mob_status_t status = engine_.progress().require()) return status;
      progress_ran_ = false;
    }
    if (network_ran_) {
      if (const mob_status_t status = engine_.network().start()) return status;
      network_ran_ = false;
    }
    return MOB_OK;
  }

  Engine& engine_;
  bool network_ran_;
  bool progress_ran_;
};

}  // namespace mobius::engine
