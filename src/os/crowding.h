// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Processes of a host that wait for each other on one and the same processor, while another one is
// idle. Each turn takes as long as the waiting one looks before it gives the processor away; the
// kernel, to which both are busy now and then, may need seconds to notice. Who waits notices at
// once: somebody else ran whenever it gave the processor away.

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mobius::os {

class Crowding {
 public:
  // Where a process was last when it shared its processor, and when, for the others: valid as
  // zeros, which say nothing.
  using Place = std::atomic<uint32_t>;

  // The places of `count` processes, `distance` bytes apart in memory shared by them, which outlive
  // this; `own` is this process'.
  void open(Place* places, size_t distance, uint32_t count, uint32_t own);

  // Gives the processor away once. A thread that has shared it with a process before this one for
  // several times in a row goes on on a processor that none of them is known to use, if there is
  // one; it may run where it could before. Any thread.
  void yield();

  // What a place says.
  static uint32_t place_of(int processor, uint64_t now_ns);
  // A processor of `allowed` to go to from `processor`; -1: it stays.
  int better_than(int processor, const cpu_set_t& allowed, uint64_t now_ns) const;

 private:
  Place& place(uint32_t index) const {
    return *reinterpret_cast<Place*>(places_ + size_t{index} * distance_);
  }
  void note_taken(uint64_t before, uint64_t now);

  unsigned char* places_ = nullptr;
  size_t distance_ = 0;
  uint32_t count_ = 0;
  uint32_t own_ = 0;
  // Guesses, which threads of this process share.
  std::atomic<uint32_t> taken_ = 0;  // in a row
  std::atomic<uint64_t> last_ns_ = 0;
  std::atomic<uint64_t> left_ns_ = 0;
  std::atomic<uint64_t> pause_ns_ = 0;
};

}  // namespace mobius::os
