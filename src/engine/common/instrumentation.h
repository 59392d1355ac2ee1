// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The observers of this rank: hooks (MOBIUS_HOOKS), the timeline (MOBIUS_TRACE), the counts
// (MOBIUS_STATS). Any component may ask; the hook chain fills it in when the job starts.

#include <mobius/job.h>

#include <cstddef>
#include <string>

#include "engine/common/timeline.h"

namespace mobius::engine {

// Counts what hooks do not see: messages of the program and collective calls. Any thread.
class CallCounts {
 public:
  virtual void count_message(mob_rank_t target, size_t bytes, mob_status_t status) = 0;
  virtual void count_call(const char* call) = 0;
  // Adds a line to the report.
  virtual void note(const std::string& line) = 0;

 protected:
  ~CallCounts() = default;
};

class Instrumentation {
 public:
  // Whether hooks stand in front of the router: every operation must pass through it then, and no
  // caller may carry one out on the spot.
  bool hooked() const { return hooked_; }

  // Where waits and handlers are drawn; null unless MOBIUS_TRACE asks for it.
  Timeline* timeline() const { return timeline_; }

  bool counts_messages() const { return counts_ != nullptr; }
  void count_message(mob_rank_t target, size_t bytes, mob_status_t status) const {
    if (counts_ != nullptr) [[unlikely]] {
      counts_->count_message(target, bytes, status);
    }
  }
  void count_call(const char* call) const {
    if (counts_ != nullptr) [[unlikely]] {
      counts_->count_call(call);
    }
  }

  void note(const std::string& line) const {
    if (counts_ != nullptr) counts_->note(line);
  }

  // Before the first operation, and after the last; both may be null.
  void install(Timeline* timeline, CallCounts* counts) {
    hooked_ = true;
    timeline_ = timeline;
    counts_ = counts;
  }
  void remove() { *this = {}; }

 private:
  bool hooked_ = false;
  Timeline* timeline_ = nullptr;
  CallCounts* counts_ = nullptr;
};

}  // namespace mobius::engine
