// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The timeline of one rank (MOBIUS_TRACE): a file of events that Perfetto and Chrome open.

#include <mobius/job.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace mobius::engine {

// An array of JSON objects ("JSON Array Format" of the trace event format), of which every write is
// a number of whole events: also a process that is killed leaves a file that tools accept. Only its
// closing bracket is missing then. Any thread.
class Timeline {
 public:
  // `name` with "%r" replaced by the rank, or with the rank before its extension; at most
  // `most_bytes` are written. MOB_ERR_SETTING if the file cannot be made.
  static mob_status_t open(const std::string& name, mob_rank_t rank, uint64_t most_bytes,
                           std::unique_ptr<Timeline>* timeline);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  static std::string file_name(const std::string& name, mob_rank_t rank);

  // Nanoseconds on a clock that all processes of a host share.
  static uint64_t now();

  // Something that went on from `begin` until now. `arguments` are the members of a JSON object,
  // without braces.
  void add(const char* name, const char* category, uint64_t begin, const char* arguments = "");

 private:
  Timeline(int file, mob_rank_t rank, uint64_t most_bytes);
  void append(const char* text, size_t bytes);
  void write_out();

  const int file_;
  const mob_rank_t rank_;
  const uint64_t most_bytes_;
  std::mutex mutex_;  // guards what follows
  std::string buffer_;
  uint64_t bytes_ = 0;  // appended ever
  bool full_ = false;   // of bytes, or the disk
};

// One event, as long as the scope; nothing where there is no timeline.
class TraceScope {
 public:
  TraceScope(Timeline* timeline, const char* name) : timeline_(timeline), name_(name) {
    if (timeline != nullptr) [[unlikely]] {
      begin_ = Timeline::now();
    }
  }
  ~TraceScope() {
    if (timeline_ != nullptr) [[unlikely]] {
      timeline_->add(name_, "wait", begin_);
    }
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Timeline* const timeline_;
  const char* const name_;
  uint64_t begin_ = 0;
};

}  // namespace mobius::engine
