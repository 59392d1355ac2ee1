// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/accessible_memory.h"

#include <algorithm>

#include "os/memory/mappings.h"

namespace mobius::os {

AccessibleMemory::AccessibleMemory(bool to_write) {
  known_ = for_each_mapping([&](const Mapping& mapping) {
    if (mapping.access[to_write ? 1 : 0] == '-') return true;
    if (!ranges_.empty() && ranges_.back().second == mapping.first) {
      ranges_.back().second = mapping.end;
    } else {
      ranges_.emplace_back(mapping.first, mapping.end);
    }
    return true;
  });
}

uintptr_t AccessibleMemory::first_outside(uintptr_t start, size_t bytes) const {
  if (!known_ || bytes == 0) return 0;
  const auto after =
      std::ranges::upper_bound(ranges_, start, {}, [](const auto& range) { return range.first; });
  const uintptr_t end = after == ranges_.begin() ? start : std::max(start, after[-1].second);
  return end - start >= bytes ? 0 : end;
}

}  // namespace mobius::os
