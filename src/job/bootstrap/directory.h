// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Small values that each process publishes for all others before they can exchange messages. The
// launcher, an MPI or a shared segment carries them.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/bootstrap/launched_job.h"

namespace mobius::job {

// Largest value, and largest sum of the values of one process with their keys.
inline constexpr size_t kDirectoryValueBytes = 1024;
inline constexpr size_t kDirectoryBytes = 3072;

struct ControlBlock;

// Every process can fetch after fence() what any process published before it. A published value
// never changes. One thread calls publish() and fence(); any thread may call the rest.
class Directory {
 public:
  Directory() = default;
  virtual ~Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  virtual mob_status_t publish(std::string_view key, std::span<const unsigned char> value) = 0;
  // Collective over the job. MOB_ERR_PEER if a process died before it called fence().
  virtual mob_status_t fence() = 0;
  // Error texts name `rank`.
  virtual mob_status_t fetch(mob_rank_t rank, std::string_view key,
                             std::vector<unsigned char>* value) = 0;

  // Reports of the launcher about a process; false where it reports nothing.
  virtual bool is_dead(mob_rank_t rank) = 0;
  virtual bool has_left(mob_rank_t rank) = 0;

  // Reports that this process leaves the job in order.
  virtual void leave() = 0;

  // Where the records of worlds are that are spawned later (control.h), by the numbers of their
  // processes: a segment and its control block. Null if the job cannot get more processes. Values
  // of their processes are fetched by number; fence() is for each world alone.
  virtual ControlBlock* worlds() { return nullptr; }
  virtual int worlds_segment() const { return -1; }
  // Reserves what `count` more processes from number `first` on need here.
  virtual mob_status_t make_room(mob_rank_t first, mob_rank_t count);
  // Whether the launcher can start processes for this job on its hosts, as a job of their own.
  virtual bool launches() { return false; }
  // Has it do so; does not wait until they run. The processes find `parent` in MOBIUS_PARENT.
  virtual mob_status_t launch(const LaunchOrder& order, std::string_view parent,
                              std::unique_ptr<LaunchedJob>* launched);
  // If launch() of another job started this process, and no program ran in it before: what that one
  // has given as `parent`, of what MOBIUS_PARENT says; and a tie to that job. Else empty.
  virtual std::string parent(std::string_view, std::unique_ptr<JobTie>*) { return {}; }

  // Whether a process is of this one's world, or of one that a bridge connects with it.
  virtual bool is_connected(mob_rank_t) { return true; }
  // Reports that this process comes to its end and uses nothing of others any more.
  virtual void start_leaving() {}
  // Whether all processes of other worlds that are connected with this one have done so, or died.
  virtual bool have_connected_come() { return true; }
};

// Logs mob_last_error() as the reason why the job ends. Call it before the call that ends the job,
// which may end this process first.
void report_end_of_job();

}  // namespace mobius::job
