// SPDX-License-Identifier: BSD-3-Clause
#include "engine/hints.h"

#include <algorithm>
#include <mutex>

#include "engine/memory.h"
#include "engine/team.h"

namespace mobius::engine {

void Hints::set(const Allocation& allocation, std::optional<schedule::Policy> policy) {
  if (!policy && !any()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(hints_, [&](const Hint& hint) { return hint.allocation == &allocation; });
  if (policy) hints_.push_back({&allocation, *policy});
  any_.store(!hints_.empty(), std::memory_order_relaxed);
}

std::optional<schedule::Policy> Hints::find(mob_rank_t rank, uint64_t remote) const {
  const std::shared_lock lock(mutex_);
  for (const Hint& hint : hints_) {
    if (hint.allocation->members.empty()) continue;  // all on this host
    const mob_rank_t member = hint.allocation->team->map().rank_of(rank);
    if (member < 0) continue;
    const Allocation::Member& part = hint.allocation->members[static_cast<size_t>(member)];
    if (remote - part.address < part.bytes) return hint.policy;
  }
  return std::nullopt;
}

}  // namespace mobius::engine
