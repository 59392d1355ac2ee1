// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <thread>

#include "engine/network/network.h"
#include "engine/progress/progress.h"

namespace mobius::engine {

// While an object of this class lives, the library runs no threads of its own, because pages that
// they use may be moved. Requests wait meanwhile. If several live at once in different threads, the
// last one restarts the library's threads. Not made in handlers, which those threads may be
// running.
class ThreadPause {
 public:
  ThreadPause(Network& network, Progress& progress) : network_(network), progress_(progress) {
    network.pause();
    progress.pause();
  }
  ~ThreadPause() { static_cast<void>(end()); }
  ThreadPause(const ThreadPause&) = delete;
  ThreadPause& operator=(const ThreadPause&) = delete;

  // Restarts the threads; tries for a while if the system has no room for a thread. Without them
  // this process serves others only while it is in a call of the library.
  mob_status_t end() noexcept {
    constexpr int kTries = 100;
    constexpr auto kBetween = std::chrono::milliseconds(1);
    if (ended_) return MOB_OK;
    ended_ = true;
    network_.end_pause();
    progress_.end_pause();
    mob_status_t status = go_on();
    for (int tries = 1; status != MOB_OK && tries < kTries; ++tries) {
      std::this_thread::sleep_for(kBetween);
      status = go_on();
    }
    return status;
  }

 private:
  mob_status_t go_on() noexcept {
    if (const mob_status_t status = progress_.go_on()) return status;
    return network_.go_on();
  }

  Network& network_;
  Progress& progress_;
  bool ended_ = false;
};

}  // namespace mobius::engine
