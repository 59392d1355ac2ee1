// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Is told of the times that transfers took over links to other hosts (scheduler/scheduler.h). Any
// thread.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>

namespace mobius::engine {

class LinkObserver {
 public:
  // A transfer that AmRma::start() began has ended. Takes no lock that is held during such a start.
  virtual void alone_ended(mob_rank_t rank) = 0;
  // A transfer outside of batches was answered after `ns`, and moved `out` bytes out and `in` bytes
  // in.
  virtual void moved(mob_rank_t rank, size_t out, size_t in, uint64_t ns) = 0;

 protected:
  ~LinkObserver() = default;
};

}  // namespace mobius::engine
