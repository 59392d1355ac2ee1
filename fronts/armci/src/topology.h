// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Domains: the processes that can access each other's memory through the addresses from
// ARMCI_Malloc(). Local peers form a domain if shared memory is at one address in all of them, the
// normal case. Otherwise (MOBIUS_ADDRESS_MODE=table) every process is a domain of its own, so that
// programs do not use pointers that mean something else in another process.

#include <cstddef>
#include <vector>

namespace mobius::armci {

class Topology {
 public:
  // Collective over the job.
  void find(const char* function);

  bool is_direct() const { return is_direct_; }
  int domains() const { return static_cast<int>(members_.size()); }
  // Ends the job if the process or domain does not exist.
  int domain_of(int proc, const char* function) const;
  // Whether a process is in another domain; false if the process does not exist.
  bool is_far(int proc) const {
    return static_cast<size_t>(proc) < domain_.size() &&
           domain_[static_cast<size_t>(proc)] != own_domain_;
  }
  const std::vector<int>& members(int domain, const char* function) const;

 private:
  bool is_direct_ = false;
  int own_domain_ = 0;
  std::vector<int> domain_;                // by process
  std::vector<std::vector<int>> members_;  // by domain, in ascending order
};

Topology& topology();

}  // namespace mobius::armci
