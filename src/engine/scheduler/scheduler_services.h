// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The components that the scheduler uses; put together by the engine.

#include <mobius/job.h>

#include <cstdint>

#include "base/settings.h"

namespace mobius::engine {

class AmRma;
class Completion;
class DeferredAccess;
class Instrumentation;
class Messages;
class Network;
class Peers;
class Progress;
class Segment;
class Waiter;

// Knows which memory of other hosts is allocated (allocation/allocations.h). Any thread.
class AllocatedMemory {
 public:
  // Whether all memory from `lowest` up to `highest` belongs to one allocation of `rank`. May be
  // false although it does.
  virtual bool holds(mob_rank_t rank, uint64_t lowest, uint64_t highest) const = 0;

 protected:
  ~AllocatedMemory() = default;
};

struct SchedulerServices {
  const base::Settings& settings;
  Peers& peers;
  Segment& segment;
  Waiter& waiter;
  Completion& completion;
  Progress& progress;
  Network& network;
  Messages& messages;
  const Instrumentation& instrumentation;
  AmRma& requests;
  DeferredAccess& deferred;
  const AllocatedMemory& allocated;
};

}  // namespace mobius::engine
