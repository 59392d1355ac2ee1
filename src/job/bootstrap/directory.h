// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the processes of a job of several hosts tell each other before they can talk: small values
// that each publishes for all, through whoever started the job.

#include <mobius/job.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace mobius::job {

// Bytes of a value, and of all the values of one process with their keys.
inline constexpr size_t kDirectoryValueBytes = 1024;
inline constexpr size_t kDirectoryBytes = 3072;

// What all processes published before fence() can be fetched by all after it. Values are not
// changed once they are published. publish() and fence() are called by one thread; the rest by any.
class Directory {
 public:
  Directory() = default;
  virtual ~Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  virtual mob_status_t publish(std::string_view key, std::span<const unsigned char> value) = 0;
  // Collective over the job. MOB_ERR_PEER when a process died that did not come.
  virtual mob_status_t fence() = 0;
  // Error texts name the rank.
  virtual mob_status_t fetch(mob_rank_t rank, std::string_view key,
                             std::vector<unsigned char>* value) = 0;

  // What whoever started the job knows of a process; false where it does not tell.
  virtual bool is_dead(mob_rank_t rank) = 0;
  virtual bool has_left(mob_rank_t rank) = 0;

  // This process ends in order.
  virtual void leave() = 0;
};

// Says why the job ends, before whatever ends it: that may be quicker than the caller.
void report_end_of_job();

}  // namespace mobius::job
