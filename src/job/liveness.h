// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which host-mates have died. Looked at only by those who have waited long: nothing here is paid
// for by a job in which nobody dies.

#include <mutex>
#include <vector>

#include "job/control.h"
#include "os/process.h"

namespace mobius::job {

class Liveness {
 public:
  // `block`, of a host with `size` processes, stays valid until close(); `self` is the caller's
  // slot.
  void open(ControlBlock& block, mob_rank_t size, mob_rank_t self);
  void close();

  // Whether a host-mate ended without leaving the job: asks the kernel, at most every few
  // milliseconds, unless it is known. Tells the others when it finds out. Allocates nothing. Any
  // thread.
  bool is_dead(mob_rank_t index);

  // Whether it has come to mob_finalize(), or is through with it: it starts nothing any more.
  bool is_leaving(mob_rank_t index) const {
    const ProcessState state = state_of(index);
    return state == ProcessState::kLeaving || state == ProcessState::kLeft;
  }
  bool has_left(mob_rank_t index) const { return state_of(index) == ProcessState::kLeft; }

 private:
  struct Peer {
    os::ProcessWatch watch;
    uint64_t next_look_ns = 0;
  };

  ProcessState state_of(mob_rank_t index) const {
    // Acquire: who sees that a process leaves sees everything that it did before.
    return block_->slot(index).state.load(std::memory_order_acquire);
  }

  ControlBlock* block_ = nullptr;
  mob_rank_t self_ = 0;
  bool can_look_ = false;  // processes have the same ids here as in the slots
  std::mutex mutex_;       // guards peers_
  std::vector<Peer> peers_;
};

}  // namespace mobius::job
