// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::engine {

// Makes the calling thread, which the library has started, one that acts for this rank. Where ranks
// are threads of one process, calls of the library find their rank by the thread that makes them.
class ThreadEntry {
 public:
  ThreadEntry() = default;
  virtual ~ThreadEntry() = default;
  ThreadEntry(const ThreadEntry&) = delete;
  ThreadEntry& operator=(const ThreadEntry&) = delete;

  virtual void enter() = 0;
};

}  // namespace mobius::engine
