// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which ordinary memory of each process is a target (include/mobius/expose.h). Origins look it up
// in shared memory before they ask the kernel for it, so that a wrong address is an error and not
// somebody's heap.

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/registry.h"

namespace mobius::engine {

class Engine;

// In the process' block: where its table is. Changed by its owner alone; `version` is odd
// meanwhile.
struct ExposureTable {
  alignas(64) std::atomic<uint64_t> version;
  std::atomic<uint64_t> offset;  // in the window
  std::atomic<uint64_t> count;   // of ranges
};

class Exposures {
 public:
  explicit Exposures(Engine& engine) : engine_(engine) {}

  // `bytes` > 0 that do not leave the address space.
  mob_status_t add(uintptr_t address, uint64_t bytes, uint64_t* handle);
  mob_status_t remove(uint64_t handle);

  // Whether all of some bytes of a process are exposed. Lock-free; any thread.
  bool covers(mob_rank_t rank, uintptr_t address, size_t bytes);

 private:
  // Ranges in shared memory are sorted and disjoint, so that one look finds the one that matters.
  struct Range {
    uint64_t start;
    uint64_t end;
  };

  mob_status_t publish();
  void allow_attach();

  Engine& engine_;
  std::mutex mutex_;  // guards changes
  Registry<Range> live_;
  void* table_ = nullptr;  // the block that is published
};

}  // namespace mobius::engine
