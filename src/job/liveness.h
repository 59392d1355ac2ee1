// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which local peers have died. Only calls that have waited long ask, so a job in which nobody dies
// pays nothing.

#include <deque>
#include <mutex>

#include "job/control.h"
#include "os/process/process.h"

namespace mobius::job {

class Liveness {
 public:
  // `block` belongs to a host with `size` processes and stays valid until close(). `self` is the
  // caller's slot.
  void open(ControlBlock& block, mob_rank_t size, mob_rank_t self);
  void close();

  // Whether a local peer ended without leaving the job. Asks the kernel, at most every few
  // milliseconds, unless the slot says so already, and marks the slot when it finds a death.
  // Allocates nothing, but for a process that was spawned later. Any thread.
  bool is_dead(mob_rank_t index);

  // Whether it has called mob_finalize() or left: it starts no more operations.
  bool is_leaving(mob_rank_t index) const {
    const ProcessState state = state_of(index);
    return state == ProcessState::kLeaving || state == ProcessState::kLeft;
  }
  // What is_dead() has found, here or in another process.
  bool is_known_dead(mob_rank_t index) const { return state_of(index) == ProcessState::kDead; }
  bool has_left(mob_rank_t index) const { return state_of(index) == ProcessState::kLeft; }

 private:
  bool make_room(mob_rank_t index);
  void close_watches_of_gone();

  struct Peer {
    os::ProcessWatch watch;
    uint64_t next_look_ns = 0;
  };

  ProcessState state_of(mob_rank_t index) const {
    // Acquire pairs with the release of the process that sets its state: everything it wrote before
    // is visible.
    return block_->slot(index).state.load(std::memory_order_acquire);
  }

  ControlBlock* block_ = nullptr;
  mob_rank_t self_ = 0;
  bool can_look_ = false;  // the process ids in the slots are valid in this process
  std::mutex mutex_;       // guards peers_
  std::deque<Peer> peers_;
};

}  // namespace mobius::job
