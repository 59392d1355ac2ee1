// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Hears what requests show of the links to other hosts (scheduler/scheduler.h). Any thread.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>

namespace mobius::engine {

class LinkObserver {
 public:
  // A transfer that AmRma::start() began has ended. Takes no lock that is held while one is begun.
  virtual void alone_ended(mob_rank_t rank) = 0;
  // A transfer that went alone was answered after `ns`: so many bytes went out and came in.
  virtual void moved(mob_rank_t rank, size_t out, size_t in, uint64_t ns) = 0;

 protected:
  ~LinkObserver() = default;
};

}  // namespace mobius::engine
