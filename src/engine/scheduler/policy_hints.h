// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The allocations of this process that have a scheduling policy of their own (mob_mem_schedule()).
// Mostly there are none, which takes one load to find out. If there are any, every recorded
// operation looks its address up; each thread keeps its last answer, and needs no lock while that
// answer holds.

#include <mobius/job.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "schedule/plan.h"

namespace mobius::engine {

// The region of an allocation that one rank of another host owns.
struct HintedRange {
  mob_rank_t rank;
  uint64_t begin;
  uint64_t end;
};

// Any thread.
class PolicyHints {
 public:
  // Sets the policy of an allocation, whose address identifies it; at most one range per rank.
  // Without a policy: removes the hint, also before the allocation is freed. False if nothing
  // changed.
  bool set(const void* allocation, std::vector<HintedRange> ranges,
           std::optional<schedule::Policy> policy);

  bool any() const { return any_.load(std::memory_order_relaxed); }

  // The policy for an address in a rank of another host.
  std::optional<schedule::Policy> find(mob_rank_t rank, uint64_t remote) const;

  // A range of a rank's addresses that have the same policy as one of them, until the next set().
  struct Around {
    uint64_t begin;
    uint64_t bytes;
  };
  Around around(mob_rank_t rank, uint64_t remote) const;

 private:
  struct Hint {
    const void* allocation;
    std::vector<HintedRange> ranges;  // by rank
    schedule::Policy policy;
  };

  // The policy of a range of a rank's addresses, until the next set().
  struct Answer {
    uint64_t version = 0;
    mob_rank_t rank = -1;
    uint64_t begin = 0;
    uint64_t end = 0;
    std::optional<schedule::Policy> policy;
  };
  const Answer& answer(mob_rank_t rank, uint64_t remote) const;
  Answer look_up(mob_rank_t rank, uint64_t remote) const;

  std::atomic<bool> any_ = false;
  // Changes with each set(), and is unique among all PolicyHints, so that a kept answer matches
  // only its own.
  std::atomic<uint64_t> version_ = 0;
  mutable std::shared_mutex mutex_;  // guards the members below
  std::vector<Hint> hints_;
};

}  // namespace mobius::engine
