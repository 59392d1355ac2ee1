// SPDX-License-Identifier: BSD-3-Clause
#include "windows/attached.h"

#include <utility>

namespace mobius::mpi {

bool Attached::attach(void* base, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto start = reinterpret_cast<uintptr_t>(base);
  const uintptr_t end = start + bytes;
  if (end < start) return false;
  auto after = regions_.upper_bound(start);
  if (bytes != 0) {
    if (after != regions_.end() && after->first < end) return false;
    if (after != regions_.begin() && std::prev(after)->second.end > start) return false;
  }
  std::vector<Exposure*> exposures;
  Placed placed{};
  if (!expose_memory(base, bytes, &exposures, &placed)) return false;
  // A displacement is an address of the process that attached the memory.
  if (placed.owner != mob_rank() || placed.address != base) {
    withdraw_memory(&exposures);
    return false;
  }
  regions_.emplace(start, Region{end, std::move(exposures)});
  return true;
}

bool Attached::detach(const void* base) {
  const std::lock_guard lock(mutex_);
  auto found = regions_.find(reinterpret_cast<uintptr_t>(base));
  if (found == regions_.end()) return false;
  withdraw_memory(&found->second.exposures);
  regions_.erase(found);
  return true;
}

void Attached::detach_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [start, region] : regions_) withdraw_memory(&region.exposures);
  regions_.clear();
}

}  // namespace mobius::mpi
