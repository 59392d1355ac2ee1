// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The launcher's standard output or standard error: keeps lines of different writers apart and
// never blocks the launcher on a slow reader.

#include <cstddef>
#include <string>
#include <string_view>

namespace mobius::launch {

inline constexpr int kOwnWriter = -1;  // the launcher's own lines

class Sink {
 public:
  explicit Sink(int descriptor);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Queues `text` of `writer`. When the last text was an unfinished line of another writer, a
  // newline is put between them.
  void put(int writer, std::string_view text);
  // Whether what `writer` puts next continues its own unfinished line.
  bool continues(int writer) const { return unfinished_ && last_writer_ == writer; }

  // Writes as much as the reader takes now. After an error everything is dropped; error() tells the
  // reason.
  void flush();

  bool empty() const { return queue_.empty(); }
  bool full() const { return queue_.size() - written_ >= kFullBytes; }
  int error() const { return error_; }
  // Drops everything that is queued and that will come.
  void abandon();

  // The descriptor to poll for room.
  int descriptor() const { return descriptor_; }

 private:
  static constexpr size_t kFullBytes = size_t{256} << 10;

  // How to write without waiting for the reader.
  enum class Kind {
    kDirect,    // a file or a device that never waits
    kSocket,    // by a flag of send()
    kReopened,  // through a description of our own that is non-blocking; the one that we inherited
                // is shared with other programs, which do not expect that
    kCautious   // asking first, then no more than a pipe with room takes
  };
  long write_some(std::string_view text);

  int descriptor_;
  Kind kind_ = Kind::kCautious;
  std::string queue_;
  size_t written_ = 0;  // bytes of queue_ that are out already
  int last_writer_ = kOwnWriter;
  bool unfinished_ = false;
  int error_ = 0;
  bool abandoned_ = false;
};

}  // namespace mobius::launch
