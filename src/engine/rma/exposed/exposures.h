// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ordinary memory of each process that is a target (include/mobius/expose.h). Origins look it up in
// shared memory before they ask the kernel to copy, so that a wrong address is an error and does
// not overwrite the target's heap.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/common/registry.h"
#include "engine/segment/range_table.h"

namespace mobius::engine {

class Delegation;
class Network;
class Progress;
class Remaps;
class RequestPath;
class ThreadPause;

class Exposures {
 public:
  // No user address is higher.
  static constexpr uint64_t kEverything = uint64_t{1} << 47;

  Exposures(Segment& segment, LocalHeap& local_heap, Delegation& delegation, Remaps& remaps,
            RequestPath& requests, Network& network, Progress& progress);
  ~Exposures();

  void open();
  void close();

  // `bytes` > 0, and the range does not wrap around.
  mob_status_t add(uintptr_t address, uint64_t bytes, uint64_t* handle);
  // The same, and moves the range's pages (remaps.h).
  mob_status_t add_moved(uintptr_t address, uint64_t bytes, uint64_t* handle);
  // Exposes all memory, grows the heap by `bytes`, and moves its pages.
  mob_status_t add_heap(uint64_t bytes, uint64_t* handle);
  mob_status_t remove(uint64_t handle);
  // Whether remove() would move pages.
  bool has_moved(uint64_t handle) const {
    const Exposed* exposed = live_.find(handle);
    return exposed != nullptr && exposed->moved != 0;
  }

  // Whether all of these bytes of a process are exposed. Lock-free; any thread.
  bool covers(mob_rank_t rank, uintptr_t address, size_t bytes) {
    ListedRange known{};
    return covers(rank, address, bytes, &known);
  }
  // The same for many ranges of one process in a row. `known` (zeros at first) is the range found
  // last, and is checked first.
  bool covers(mob_rank_t rank, uintptr_t address, size_t bytes, ListedRange* known) {
    return (address >= known->start && address < known->end && bytes <= known->end - address) ||
           find_and_cover(rank, address, bytes, known);
  }

 private:
  struct Exposed {
    uint64_t start;
    uint64_t end;
    uintptr_t moved;  // start of the moved pages; 0: none
  };

  bool find_and_cover(mob_rank_t rank, uintptr_t address, size_t bytes, ListedRange* found);
  mob_status_t add_locked(const Exposed& exposed, uint64_t* handle);
  // `call` names the public function in errors.
  mob_status_t add_pages(const char* call, const Exposed& exposed, uint64_t bytes, bool anonymous,
                         uint64_t* handle);
  mob_status_t add_pages_locked(const char* call, const Exposed& exposed, uint64_t bytes,
                                bool anonymous, uint64_t* handle);
  mob_status_t remove_locked(uint64_t handle);
  void publish(std::vector<ListedRange> ranges);

  void hold_for_fork();
  void go_on_after_fork();
  void stay_alone();

  Segment& segment_;
  Delegation& delegation_;
  Remaps& remaps_;
  RequestPath& requests_;
  Network& network_;
  Progress& progress_;
  std::mutex mutex_;                         // guards changes
  uint64_t heap_ = 0;                        // the handle that add_heap() returned last
  std::unique_ptr<ThreadPause> fork_pause_;  // held from before fork() until after it
  Registry<Exposed> live_;
  size_t count_ = 0;  // number of live exposures
  RangeList list_;    // shown to others; sorted and disjoint, so one lookup is enough
};

}  // namespace mobius::engine
