// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Views: remapped memory (remaps.h) mapped in a local peer a second time, at its address in the
// owner, if that address is free. Inlined calls then reach it like an allocation. Where there is no
// view, out-of-line calls reach the memory through the window.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "engine/segment/range_table.h"
#include "engine/segment/window/translation_cache.h"

namespace mobius::engine {

class KernelCopy;
class Segment;

class RemapViews {
 public:
  RemapViews(Segment& segment, const KernelCopy& kernel_copy)
      : segment_(segment), kernel_copy_(kernel_copy) {}
  RemapViews(const RemapViews&) = delete;
  RemapViews& operator=(const RemapViews&) = delete;

  // The list in which a range was found, and its version at that time.
  struct Found {
    const RangeTable* table;
    uint64_t version;
  };

  // Whether a range has its owner's address here, too. Now and then it also becomes the range that
  // inlined puts and gets reach in `rank`. Any thread.
  bool show(mob_rank_t rank, const ListedRange& range, Found found);
  // Makes `bytes` bytes at `start` of such a range the ones that inlined operations reach, unless
  // the owner has changed its list since. Any thread.
  void enter(mob_rank_t rank, TargetUse use, uintptr_t start, uint64_t bytes, Found found);

  // Called by the owner for memory that its list no longer shows: once this returns, no inlined
  // operation of a local peer reaches it. MOB_ERR_SYSTEM if a peer cannot be prevented from it. One
  // thread at a time.
  mob_status_t revoke(uintptr_t address, uint64_t bytes);

  // Unmaps all views. No other thread may use them.
  void close();

 private:
  struct Key {
    mob_rank_t rank;
    uintptr_t first_page;
    auto operator<=>(const Key&) const = default;
  };
  struct View {
    uintptr_t start;  // of the viewed range, which need not fill its pages
    size_t bytes;
    uint64_t place;  // offset in the segment
    bool is_mapped;  // false: mapping it failed
  };
  using Views = std::map<Key, View>;

  bool map(mob_rank_t rank, const RangeTable& table, const ListedRange& range);
  // Drop the views of a rank that overlap a range, or that its list no longer shows.
  void drop_overlapping(mob_rank_t rank, uintptr_t start, size_t bytes);
  size_t drop_stale(mob_rank_t rank, const RangeTable& table);
  Views::iterator drop(Views::iterator view);
  mob_status_t forget_at(mob_rank_t peer, uint64_t entries, TargetUse use, uintptr_t address);

  Segment& segment_;
  const KernelCopy& kernel_copy_;
  std::mutex mutex_;  // guards views_
  Views views_;
  std::mutex entering_;
};

}  // namespace mobius::engine
