// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Whether the kernel copies between this process and local peers (cross-memory attach).

#include <mobius/job.h>

#include <atomic>

#include "base/settings.h"
#include "engine/common/peers.h"
#include "os/process/process.h"

namespace mobius::engine {

class KernelCopy {
 public:
  explicit KernelCopy(const Peers& peers) : peers_(peers) {}

  // When the job has its processes. Not allowed by the settings, or in a PID namespace whose
  // numbers other processes do not know: never.
  void open(const base::Settings& settings) {
    allowed_.store(settings.cma_allowed() && peers_.knows_pid_of(peers_.rank()),
                   std::memory_order_relaxed);
    opened_as_ = os::Credentials::own();
  }

  // Whether the kernel copies at all; false once it has refused.
  bool allowed() const { return allowed_.load(std::memory_order_relaxed); }
  // … and with this local peer: not if the peer is in another PID namespace, where its number
  // names another process here.
  bool allowed(mob_rank_t rank) const { return allowed() && peers_.knows_pid_of(rank); }

  // The same for callers that the others have to agree with: also false once this process has
  // changed its user or became one that others may not read, as a server does that drops its
  // privileges. Two system calls.
  bool is_still_allowed() {
    if (allowed() && os::Credentials::own() != opened_as_) refuse();
    return allowed();
  }

  // The kernel has refused (EPERM, ENOSYS): nobody tries again. Any thread.
  void refuse() { allowed_.store(false, std::memory_order_relaxed); }

 private:
  const Peers& peers_;
  std::atomic<bool> allowed_ = false;
  os::Credentials opened_as_;
};

}  // namespace mobius::engine
