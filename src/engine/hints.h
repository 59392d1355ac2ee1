// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which allocations of this process have a schedule of their own (mob_mem_schedule()). Mostly none,
// which is one load to know.

#include <mobius/job.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "schedule/plan.h"

namespace mobius::engine {

struct Allocation;

// Any thread.
class Hints {
 public:
  // Without a policy: no hint any more, also before the allocation goes.
  void set(const Allocation& allocation, std::optional<schedule::Policy> policy);

  bool any() const { return any_.load(std::memory_order_relaxed); }

  // Of an address in a rank of another host.
  std::optional<schedule::Policy> find(mob_rank_t rank, uint64_t remote) const;

 private:
  struct Hint {
    const Allocation* allocation;
    schedule::Policy policy;
  };

  std::atomic<bool> any_ = false;
  mutable std::shared_mutex mutex_;  // guards what follows
  std::vector<Hint> hints_;
};

}  // namespace mobius::engine
