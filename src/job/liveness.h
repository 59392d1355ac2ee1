// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which host-mates have died. Looked at only by those who have waited long: nothing here is paid
// for by a job in which nobody dies.

#include <map>
#include <mutex>

#include "job/host_group.h"
#include "os/process.h"

namespace mobius::job {

class Liveness {
 public:
  void open(HostGroup& group) { group_ = &group; }
  void close() { watches_.clear(); }

  // Whether a host-mate ended without leaving the job. Tells the others when it finds out. Any
  // thread.
  bool is_dead(mob_rank_t index);

  // Whether it left the job in order, and will not answer any more.
  bool has_left(mob_rank_t index) const {
    return group_->slot(index).state.load(std::memory_order_acquire) == ProcessState::kLeft;
  }

 private:
  HostGroup* group_ = nullptr;
  std::mutex mutex_;  // guards watches_
  std::map<mob_rank_t, os::ProcessWatch> watches_;
};

}  // namespace mobius::job
