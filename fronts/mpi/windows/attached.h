// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The memory that this process has attached to a dynamic window.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "windows/program_memory.h"

namespace mobius::mpi {

class Attached {
 public:
  // False if it overlaps what is attached already, or Möbius cannot make it a target.
  bool attach(void* base, size_t bytes);
  // False if nothing that begins there is attached.
  bool detach(const void* base);
  void detach_all();

 private:
  struct Region {
    uintptr_t end;
    std::vector<Exposure*> exposures;
  };
  std::mutex mutex_;  // guards the rest
  std::multimap<uintptr_t, Region> regions_;
};

}  // namespace mobius::mpi
