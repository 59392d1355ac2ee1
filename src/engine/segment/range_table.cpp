// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/range_table.h"

#include <algorithm>

#include "engine/segment/segment.h"
#include "engine/segment/window/local_heap.h"

namespace mobius::engine {
namespace {

// Single words are never torn; the version tells which words belong together.
uint64_t load(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
void store(uint64_t& word, uint64_t value) { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }

// How many of the sorted ranges start at or before an address.
uint64_t starting_before(const ListedRange* ranges, uint64_t count, uintptr_t address) {
  uint64_t low = 0;
  for (uint64_t high = count; low < high;) {
    const uint64_t middle = (low + high) / 2;
    if (load(ranges[middle].start) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Makes the version odd while it lives.
class Change {
 public:
  explicit Change(RangeTable& table)
      : table_(table), before_(table.version.load(std::memory_order_relaxed)) {
    table_.version.store(before_ + 1, std::memory_order_relaxed);
    // Pairs with the acquire fence in find_range(): a reader that saw anything of what follows, or
    // of memory that is used again, sees that the version has changed.
    std::atomic_thread_fence(std::memory_order_release);
  }
  // Pairs with the acquire in find_range().
  ~Change() { table_.version.store(before_ + 2, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  RangeTable& table_;
  const uint64_t before_;
};

}  // namespace

mob_status_t RangeList::reserve(size_t count) {
  if (count <= capacity_) return MOB_OK;
  const size_t room = std::max<size_t>({count, 2 * capacity_, 16});
  void* block = nullptr;
  if (const mob_status_t status =
          local_heap_.allocate(room * sizeof(ListedRange), alignof(ListedRange), &block)) {
    return status;
  }
  auto* longer = static_cast<ListedRange*>(block);
  std::copy_n(ranges_, table_->count.load(std::memory_order_relaxed), longer);
  void* old = ranges_;
  {
    const Change change(*table_);
    table_->offset.store(segment_.offset_of(longer), std::memory_order_relaxed);
  }
  ranges_ = longer;
  capacity_ = room;
  return old == nullptr ? MOB_OK : local_heap_.release("mob_expose", old);
}

void RangeList::publish(const std::vector<ListedRange>& ranges) {
  const Change change(*table_);
  for (size_t i = 0; i < ranges.size(); ++i) {
    store(ranges_[i].start, ranges[i].start);
    store(ranges_[i].end, ranges[i].end);
    store(ranges_[i].place, ranges[i].place);
  }
  table_->count.store(ranges.size(), std::memory_order_relaxed);
}

bool find_range(Segment& segment, mob_rank_t rank, const RangeTable& table, uintptr_t address,
                ListedRange* found, uint64_t* version) {
  const mob_rank_t index = segment.peers().host_index(rank);
  while (true) {
    // Acquire pairs with the release of the even version at the end of a change.
    *version = table.version.load(std::memory_order_acquire);
    if (*version == 0) return false;
    const uint64_t offset = table.offset.load(std::memory_order_relaxed);
    const uint64_t count = table.count.load(std::memory_order_relaxed);
    bool is_found = false;
    if (*version % 2 == 0 && count > 0) {
      const auto* ranges = static_cast<const ListedRange*>(
          segment.find_here(rank, segment.address_in(index, offset), count * sizeof(ListedRange)));
      const uint64_t before = ranges == nullptr ? 0 : starting_before(ranges, count, address);
      if (before > 0) {
        const ListedRange& last = ranges[before - 1];
        *found = {load(last.start), load(last.end), load(last.place)};
        is_found = address <= found->end;
      }
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with that of a change
    if (table.version.load(std::memory_order_relaxed) == *version) {
      if (*version % 2 == 0) return is_found;
      if (segment.peers().liveness().is_dead(index)) return false;  // in the middle of a change
    }
  }
}

}  // namespace mobius::engine
