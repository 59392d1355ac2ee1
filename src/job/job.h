// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Joining a job: under `mobius run` through its launcher, otherwise as a job of one.

#include <mobius/job.h>

#include "base/settings.h"
#include "job/host_group.h"
#include "os/unix_socket.h"

namespace mobius::job {

class Job {
 public:
  // Finds out how this process was started and joins. Blocks until all processes of the host did.
  mob_status_t join(const base::Settings& settings);

  // Joins as one of `size` threads of this process that share `segment`, which stays the caller's.
  mob_status_t join_threads(const base::Settings& settings, int segment, mob_rank_t rank,
                            mob_rank_t size);

  // Tells the launcher that this process ends in order. Call after the last collective step.
  void leave();

  // Tells the others that this process starts nothing any more. Before leave().
  void start_leaving();

  // Leaves without a goodbye, after a failure: the launcher ends the job, because the others may be
  // waiting for this process.
  void abandon();

  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return size_; }
  HostGroup& host() { return host_; }
  const HostGroup& host() const { return host_; }

 private:
  mob_status_t join_alone(const base::Settings& settings);
  mob_status_t join_launcher(const base::Settings& settings, mob_rank_t rank);
  mob_status_t enter(const base::Settings& settings, int segment, mob_rank_t rank, mob_rank_t size,
                     bool pid_is_shared);

  mob_rank_t rank_ = 0;
  mob_rank_t size_ = 1;
  os::UnixSocket launcher_;  // open while we are part of a launched job
  HostGroup host_;
};

// Tells the launcher, if there is one, that the job has to end. Any thread, at any time.
void request_abort(const char* const* environment);

}  // namespace mobius::job
