// SPDX-License-Identifier: BSD-3-Clause
#include "job/liveness.h"

#include <unistd.h>

#include <new>

#include "os/sync/futex.h"

namespace mobius::job {
namespace {

// Time between two questions to the kernel about one process.
constexpr uint64_t kLookIntervalNs = 2'000'000;

}  // namespace

void Liveness::open(ControlBlock& block, mob_rank_t size, mob_rank_t self) {
  peers_.resize(static_cast<size_t>(size));
  block_ = &block;
  self_ = self;
  can_look_ = block.slot(self).start_time.load(std::memory_order_relaxed) != 0;
}

void Liveness::close() {
  const std::lock_guard lock(mutex_);
  peers_.clear();
}

// For processes that were spawned later. False if there is no memory.
bool Liveness::make_room(mob_rank_t index) {
  try {
    while (static_cast<size_t>(index) >= peers_.size()) peers_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// A job that spawns again and again has watched many processes, each of which costs a descriptor.
void Liveness::close_watches_of_gone() {
  for (size_t index = 0; index < peers_.size(); ++index) {
    const ProcessState state = state_of(static_cast<mob_rank_t>(index));
    if (state == ProcessState::kLeft || state == ProcessState::kDead) peers_[index].watch.close();
  }
}

bool Liveness::is_dead(mob_rank_t index) {
  const ProcessState state = state_of(index);
  if (state != ProcessState::kLive && state != ProcessState::kLeaving) {
    return state == ProcessState::kDead;
  }
  ProcessSlot& slot = block_->slot(index);
  const pid_t pid = slot.pid.load(std::memory_order_relaxed);
  const uint64_t start_time = slot.start_time.load(std::memory_order_relaxed);
  // A pid equal to ours is another rank that is a thread of this process. Where a peer cannot be
  // looked up, the launcher declares it dead.
  if (index == self_ || !can_look_ || start_time == 0 || pid == getpid()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (peers_.empty()) return false;  // closed
    if (static_cast<size_t>(index) >= peers_.size() && !make_room(index)) return false;
    Peer& peer = peers_[static_cast<size_t>(index)];
    const uint64_t now = os::now_ns();
    if (now < peer.next_look_ns) return false;
    if (peer.next_look_ns == 0) close_watches_of_gone();
    peer.next_look_ns = now + kLookIntervalNs;
    if (!peer.watch.has_ended(pid, start_time)) return false;
  }
  return declare_dead(slot);  // false if it has left in the meantime
}

}  // namespace mobius::job
