// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sets of processors of any size: cpu_set_t alone ends at 1024.

#include <sched.h>

#include <cstddef>
#include <vector>

namespace mobius::launch {

// Numbers of the processors that this process may run on, ascending.
std::vector<int> allowed_processors();

class ProcessorSet {
 public:
  ProcessorSet() = default;
  ~ProcessorSet();
  ProcessorSet(const ProcessorSet&) = delete;
  ProcessorSet& operator=(const ProcessorSet&) = delete;

  void set_only(int processor);
  const cpu_set_t* get() const { return set_; }  // null when nothing was set
  size_t bytes() const { return bytes_; }

 private:
  cpu_set_t* set_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace mobius::launch
