// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which allocations of this process have a schedule of their own (mob_mem_schedule()). Mostly none,
// which is one load to know. If there are any, every operation that is recorded asks: each thread
// remembers what it was told last, and as far as that goes needs no lock.

#include <mobius/job.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "schedule/plan.h"

namespace mobius::engine {

// The part of an allocation that one rank of another host owns.
struct HintedRange {
  mob_rank_t rank;
  uint64_t begin;
  uint64_t end;
};

// Any thread.
class PolicyHints {
 public:
  // Sets the policy of an allocation, which its address tells from others; at most one range of
  // each rank. Without a policy: no hint any more, also before the allocation goes. False if
  // nothing changed.
  bool set(const void* allocation, std::vector<HintedRange> ranges,
           std::optional<schedule::Policy> policy);

  bool any() const { return any_.load(std::memory_order_relaxed); }

  // Of an address in a rank of another host.
  std::optional<schedule::Policy> find(mob_rank_t rank, uint64_t remote) const;

  // Addresses of a rank around one of which the same is true, until something is set.
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

  // What is true of all addresses of a rank that lie between two others, until something is set.
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
  // Another one after each change, and of no other Hints, so that an answer of it is of this one.
  std::atomic<uint64_t> version_ = 0;
  mutable std::shared_mutex mutex_;  // guards what follows
  std::vector<Hint> hints_;
};

}  // namespace mobius::engine
