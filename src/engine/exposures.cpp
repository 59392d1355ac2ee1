// SPDX-License-Identifier: BSD-3-Clause
#include "engine/exposures.h"

#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace mobius::engine {

using base::fail;

mob_status_t Exposures::add(uintptr_t address, uint64_t bytes, uint64_t* handle) {
  // Whoever finds the range in the table may ask for what only this process can do.
  if (const mob_status_t status = engine_.served().require()) return status;
  allow_attach();
  const std::lock_guard lock(mutex_);
  const uint64_t added = live_.add(std::make_unique<Range>(Range{address, address + bytes}));
  if (added == 0) return fail(MOB_ERR_MEMORY, "mob_expose: too much is exposed already");
  if (const mob_status_t status = publish()) {
    live_.remove(added);
    return status;
  }
  *handle = added;
  return MOB_OK;
}

mob_status_t Exposures::remove(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  if (live_.remove(handle) == nullptr) {
    return fail(MOB_ERR_HANDLE, "mob_withdraw: not exposed (withdrawn before, or never exposed)");
  }
  return publish();
}

// Where only ancestors may attach (Yama), a process can allow others.
void Exposures::allow_attach() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

mob_status_t Exposures::publish() {
  std::vector<Range> ranges;
  live_.for_each([&](const Range& range) { ranges.push_back(range); });
  std::ranges::sort(ranges, {}, &Range::start);
  size_t merged = 0;
  for (const Range& range : ranges) {
    if (merged > 0 && range.start <= ranges[merged - 1].end) {
      ranges[merged - 1].end = std::max(ranges[merged - 1].end, range.end);
    } else {
      ranges[merged++] = range;
    }
  }
  void* block = nullptr;
  if (merged > 0) {
    const mob_status_t status =
        engine_.local_heap().allocate(merged * sizeof(Range), alignof(Range), &block);
    if (status != MOB_OK) return status;
    auto* to = static_cast<Range*>(block);
    for (size_t i = 0; i < merged; ++i) {
      __atomic_store_n(&to[i].start, ranges[i].start, __ATOMIC_RELAXED);
      __atomic_store_n(&to[i].end, ranges[i].end, __ATOMIC_RELAXED);
    }
  }
  ExposureTable& table = engine_.process(engine_.host().index()).exposures;
  const uint64_t version = table.version.load(std::memory_order_relaxed);
  table.version.store(version + 1, std::memory_order_relaxed);
  // Pairs with the acquire fence in covers(): who read anything of what follows, or of a block that
  // is used again, sees that the version has moved on.
  std::atomic_thread_fence(std::memory_order_release);
  table.offset.store(block != nullptr ? engine_.offset_of(block) : 0, std::memory_order_relaxed);
  table.count.store(merged, std::memory_order_relaxed);
  // Pairs with the acquire in covers().
  table.version.store(version + 2, std::memory_order_release);
  std::swap(table_, block);
  if (block == nullptr) return MOB_OK;
  return engine_.local_heap().release("mob_expose", block);
}

bool Exposures::covers(mob_rank_t rank, uintptr_t address, size_t bytes) {
  const mob_rank_t index = Engine::host_index(rank);
  const ExposureTable& table = engine_.process(index).exposures;
  while (true) {
    // Acquire pairs with the release of the even version in publish().
    const uint64_t version = table.version.load(std::memory_order_acquire);
    if (version == 0) return false;
    const uint64_t offset = table.offset.load(std::memory_order_relaxed);
    const uint64_t count = table.count.load(std::memory_order_relaxed);
    bool found = false;
    if (version % 2 == 0 && count > 0) {
      const auto* ranges = static_cast<const Range*>(
          engine_.find_here(rank, engine_.address_in(index, offset), count * sizeof(Range)));
      uint64_t low = 0;
      for (uint64_t high = ranges != nullptr ? count : 0; low < high;) {
        const uint64_t middle = (low + high) / 2;
        if (__atomic_load_n(&ranges[middle].start, __ATOMIC_RELAXED) <= address) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low > 0) {
        const uint64_t end = __atomic_load_n(&ranges[low - 1].end, __ATOMIC_RELAXED);
        found = address <= end && bytes <= end - address;
      }
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with publish()
    if (table.version.load(std::memory_order_relaxed) == version) {
      if (version % 2 == 0) return found;
      if (engine_.liveness().is_dead(index)) return false;  // in the middle of a change
    }
  }
}

}  // namespace mobius::engine
