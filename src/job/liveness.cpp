// SPDX-License-Identifier: BSD-3-Clause
#include "job/liveness.h"

namespace mobius::job {

bool Liveness::is_dead(mob_rank_t index) {
  ProcessSlot& slot = group_->slot(index);
  const ProcessState state = slot.state.load(std::memory_order_acquire);
  if (state != ProcessState::kLive) return state == ProcessState::kDead;
  if (index == group_->index()) return false;
  const std::lock_guard lock(mutex_);
  if (!watches_[index].has_ended(slot.pid.load(std::memory_order_relaxed),
                                 slot.start_time.load(std::memory_order_relaxed))) {
    return false;
  }
  // It may have left between the two looks.
  ProcessState expected = ProcessState::kLive;
  const bool died =
      slot.state.compare_exchange_strong(expected, ProcessState::kDead, std::memory_order_acq_rel);
  return died || expected == ProcessState::kDead;
}

}  // namespace mobius::job
