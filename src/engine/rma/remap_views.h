// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Moved memory (remaps.h) mapped in a host-mate a second time, at the address that it has in its
// owner, where nothing is there: so the inlined calls reach it like an allocation. Where that fails
// it is reached through the window, by the out-of-line calls.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "engine/segment/range_table.h"
#include "engine/segment/translation_cache.h"

namespace mobius::engine {

class KernelCopy;
class Segment;

class RemapViews {
 public:
  RemapViews(Segment& segment, const KernelCopy& kernel_copy)
      : segment_(segment), kernel_copy_(kernel_copy) {}
  RemapViews(const RemapViews&) = delete;
  RemapViews& operator=(const RemapViews&) = delete;

  // The list that something was found in, and its version then.
  struct Found {
    const RangeTable* table;
    uint64_t version;
  };

  // Whether a range has its owner's address here, too. Now and then it also becomes what inlined
  // puts and gets reach in `rank`. Any thread.
  bool show(mob_rank_t rank, const ListedRange& range, Found found);
  // Makes `bytes` bytes at `start` of such a range what inlined operations reach, unless its owner
  // has changed the list since. Any thread.
  void enter(mob_rank_t rank, TargetUse use, uintptr_t start, uint64_t bytes, Found found);

  // The owner's side, of memory that its list does not show any more: once this returns no inlined
  // operation of a host-mate reaches it. MOB_ERR_SYSTEM if one cannot be kept from it. One thread.
  mob_status_t revoke(uintptr_t address, uint64_t bytes);

  // Unmaps all of them. No other thread uses them.
  void close();

 private:
  struct Key {
    mob_rank_t rank;
    uintptr_t first_page;
    auto operator<=>(const Key&) const = default;
  };
  struct View {
    uintptr_t start;  // of the range that it is of, which need not fill its pages
    size_t bytes;
    uint64_t place;  // in the segment
    bool is_mapped;  // false: it could not be
  };
  using Views = std::map<Key, View>;

  bool map(mob_rank_t rank, const RangeTable& table, const ListedRange& range);
  // Of a rank's views those that overlap, or that its list does not show any more.
  void drop_overlapping(mob_rank_t rank, uintptr_t start, size_t bytes);
  size_t drop_stale(mob_rank_t rank, const RangeTable& table);
  Views::iterator drop(Views::iterator view);
  mob_status_t forget_at(mob_rank_t mate, uint64_t entries, TargetUse use, uintptr_t address);

  Segment& segment_;
  const KernelCopy& kernel_copy_;
  std::mutex mutex_;  // guards the next
  Views views_;
  std::mutex entering_;
};

}  // namespace mobius::engine
