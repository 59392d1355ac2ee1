// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Detects processes of a host that wait for each other on one processor while another processor is
// idle. Each turn then takes as long as the waiting process spins before it yields, and the kernel,
// for which both are busy now and then, may need seconds to notice. A waiting process notices at
// once: another process ran whenever it yielded.

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace mobius::os {

class Crowding {
 public:
  // The processor that a process last shared, and when, for the other processes to read. Valid as
  // zeros, which mean nothing.
  using Place = std::atomic<uint32_t>;

  // The places of `count` processes, `distance` bytes apart in memory that they share. The memory
  // must outlive this object. `own` is the index of this process.
  void open(Place* places, size_t distance, uint32_t count, uint32_t own);
  // Others have come. Any thread.
  void set_count(uint32_t count) { count_.store(count, std::memory_order_relaxed); }

  // This process also waits for the processes of another group, in which it has a place, too: a
  // waiting thread looks at both from now on, until unlink(). Any thread.
  void link(Crowding& other);
  void unlink(Crowding& other);

  // Yields the processor once. A thread that has shared the processor with an earlier process
  // several times in a row moves to a processor that none of them is known to use, if there is one.
  // The processors on which it may run do not change. Any thread.
  void yield();

  // The value of a place.
  static uint32_t place_of(int processor, uint64_t now_ns);
  // A processor of `allowed` to which to move from `processor`; -1: stay.
  int better_than(int processor, const cpu_set_t& allowed, uint64_t now_ns) const;

 private:
  Place& place(uint32_t index) const {
    return *reinterpret_cast<Place*>(places_ + size_t{index} * distance_);
  }
  void note_taken(uint64_t before, uint64_t now);
  void publish(uint32_t place_of_own);
  // Takes the processors that others use off `free`. Whether an earlier process shares this one.
  bool look(int processor, uint64_t now_ns, cpu_set_t* free) const;

  unsigned char* places_ = nullptr;
  size_t distance_ = 0;
  std::atomic<uint32_t> count_ = 0;
  uint32_t own_ = 0;
  mutable std::mutex links_mutex_;
  std::vector<Crowding*> links_;
  // Estimates, which threads of this process share.
  std::atomic<uint32_t> taken_ = 0;  // consecutive yields in which another process ran
  std::atomic<uint64_t> last_ns_ = 0;
  std::atomic<uint64_t> left_ns_ = 0;
  std::atomic<uint64_t> pause_ns_ = 0;
};

}  // namespace mobius::os
