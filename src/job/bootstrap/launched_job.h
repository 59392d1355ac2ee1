// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Processes that the launcher of a job on several hosts starts for it. They are a job of their own,
// which connects with the first one by a port (decision 0027).

#include <mobius/job.h>

#include <functional>
#include <memory>
#include <span>

#include "job/spawn_request.h"

namespace mobius::job {

struct LaunchOrder {
  const SpawnRequest& request;
  // For each process the rank of this job on whose host it starts.
  std::span<const mob_rank_t> beside;
  bool survive = false;  // the others go on when one of them dies
  bool tags = false;     // their output is marked with their ranks
};

// While it lives, this process ends when another job does that ends by an error, unless processes
// go on when others die (MOBIUS_ON_DEATH).
class JobTie {
 public:
  JobTie() = default;
  virtual ~JobTie() = default;
  JobTie(const JobTie&) = delete;
  JobTie& operator=(const JobTie&) = delete;
};

class LaunchedJob {
 public:
  LaunchedJob() = default;
  virtual ~LaunchedJob() = default;
  LaunchedJob(const LaunchedJob&) = delete;
  LaunchedJob& operator=(const LaunchedJob&) = delete;

  // Whether all is well as far as the launcher has told. MOB_ERR_SYSTEM: they could not be started;
  // MOB_ERR_PEER: one of them has ended. `*failed` is then the number of the process, or -1 if the
  // launcher does not tell. Does not block.
  virtual mob_status_t look(const char* call, mob_rank_t* failed) = 0;
  // Whether the launcher has said that it has started them.
  virtual bool has_answered() = 0;
  // Ends the processes. Calls `work` meanwhile, and returns when the launcher says that they have
  // ended, or does not say so for some seconds.
  virtual void end(const std::function<void()>& work) = 0;
  // They have joined.
  virtual std::unique_ptr<JobTie> tie() = 0;
};

}  // namespace mobius::job
