// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/status.h"
#include "os/process/stopped_threads.h"

namespace mobius::engine {

// Makes pages shared or private while no thread writes to them. `move` allocates nothing. `call`
// names the public function in errors.
template <typename MovePages>
mob_status_t move_pages(const char* call, MovePages move) {
  const os::StoppedThreads stopped;
  if (stopped.left() == 0) return move();
  if (stopped.error() != 0) {
    return base::fail_errno(
        MOB_ERR_STATE, stopped.error(),
        "%s: pages move only while no other thread runs, and the threads of the "
        "process cannot be listed (/proc/self/task)",
        call);
  }
  return base::fail(
      MOB_ERR_STATE,
      "%s: %d other threads of the process cannot be stopped while pages move, and may write "
      "to them; let none block SIGURG, or call this before they are started",
      call, stopped.left());
}

}  // namespace mobius::engine
