// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler/policy_hints.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace mobius::engine {

namespace {

std::atomic<uint64_t> last_version = 0;  // of all PolicyHints

}  // namespace

bool PolicyHints::set(const void* allocation, std::vector<HintedRange> ranges,
                      std::optional<schedule::Policy> policy) {
  if (!policy && !any()) return false;
  const std::lock_guard lock(mutex_);
  const size_t erased =
      std::erase_if(hints_, [&](const Hint& hint) { return hint.allocation == allocation; });
  if (!policy && erased == 0) return false;
  if (policy) {
    std::ranges::sort(ranges, {}, &HintedRange::rank);
    hints_.push_back({allocation, std::move(ranges), *policy});
  }
  version_.store(last_version.fetch_add(1, std::memory_order_relaxed) + 1,
                 std::memory_order_release);
  any_.store(!hints_.empty(), std::memory_order_relaxed);
  return true;
}

std::optional<schedule::Policy> PolicyHints::find(mob_rank_t rank, uint64_t remote) const {
  return answer(rank, remote).policy;
}

PolicyHints::Around PolicyHints::around(mob_rank_t rank, uint64_t remote) const {
  if (!any()) return {0, UINT64_MAX};
  const Answer& found = answer(rank, remote);
  return {found.begin, found.end - found.begin};
}

const PolicyHints::Answer& PolicyHints::answer(mob_rank_t rank, uint64_t remote) const {
  thread_local Answer last;
  if (last.version != version_.load(std::memory_order_acquire) || last.rank != rank ||
      remote < last.begin || remote >= last.end) {
    last = look_up(rank, remote);
  }
  return last;
}

PolicyHints::Answer PolicyHints::look_up(mob_rank_t rank, uint64_t remote) const {
  const std::shared_lock lock(mutex_);
  Answer answer{version_.load(std::memory_order_relaxed), rank, 0, UINT64_MAX, std::nullopt};
  for (const Hint& hint : hints_) {
    const auto range = std::ranges::lower_bound(hint.ranges, rank, {}, &HintedRange::rank);
    if (range == hint.ranges.end() || range->rank != rank) continue;
    if (remote < range->begin) {
      answer.end = std::min(answer.end, range->begin);
    } else if (remote >= range->end) {
      answer.begin = std::max(answer.begin, range->end);
    } else {
      answer.begin = range->begin;
      answer.end = range->end;
      answer.policy = hint.policy;
      break;
    }
  }
  return answer;
}

}  // namespace mobius::engine
