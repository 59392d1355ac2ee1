// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/exposed/remap_views.h"

#include <sched.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <new>

#include "base/status.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/segment.h"
#include "engine/segment/window/translation_cache.h"
#include "os/memory/pages.h"
#include "transport/cma/cma.h"

namespace mobius::engine {
namespace {

// Limits for one rank, and for all: each view is a mapping, and the kernel gives a process 65,530.
constexpr size_t kMostOfRank = 64;
constexpr size_t kMostViews = 8192;

// Whether the owner of this memory may write to this process, as revoke() has to. If the kernel
// refuses this process' access to the owner, it refuses the owner's, too.
bool may_be_attached(pid_t owner, uintptr_t memory) {
  transport::allow_attach();
  char byte = 0;
  return prctl(PR_GET_DUMPABLE) == 1 &&
         transport::cma_copy(owner, memory, &byte, sizeof byte, false) == 0;
}

}  // namespace

bool RemapViews::show(mob_rank_t rank, const ListedRange& range, Found found) {
  if (!segment_.peers().is_same_process(rank)) {
    // If another thread is changing the views, this call uses the window.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || !map(rank, *found.table, range)) return false;
  }
  // A caller that alternates between two ranges finds the other one in remap_cache.h.
  if (!target_has_view(rank) || target_is_due(rank, TargetUse::kBytes)) {
    enter(rank, TargetUse::kBytes, range.start, range.end - range.start, found);
  }
  return true;
}

bool RemapViews::map(mob_rank_t rank, const RangeTable& table, const ListedRange& range) {
  const uintptr_t first = os::page_start(range.start);
  const size_t bytes = os::page_start(range.end - 1) + os::page_bytes() - first;
  const uint64_t place = job::kWindowOffset + range.place - (range.start - first);
  const Key key{rank, first};
  const auto found = views_.find(key);
  if (found != views_.end() && found->second.bytes == bytes && found->second.place == place) {
    found->second.start = range.start;
    return found->second.is_mapped;
  }
  if (!segment_.window().same_address() || !kernel_copy_.allowed(rank)) return false;
  drop_overlapping(rank, first, bytes);
  if (drop_stale(rank, table) >= kMostOfRank || views_.size() >= kMostViews) return false;
  try {
    View& view = views_.emplace(key, View{range.start, bytes, place, false}).first->second;
    view.is_mapped = may_be_attached(segment_.peers().pid_of(rank), range.start) &&
                     os::map_where_free(first, bytes, {segment_.peers().host().segment(), place});
    return view.is_mapped;
  } catch (const std::bad_alloc&) {
    return false;  // the window serves as well
  }
}

RemapViews::Views::iterator RemapViews::drop(Views::iterator view) {
  const uintptr_t first = view->first.first_page;
  if (view->second.is_mapped) {
    target_forget_all(view->first.rank, first, view->second.bytes);
    os::unmap(first, view->second.bytes);
  }
  return views_.erase(view);
}

void RemapViews::drop_overlapping(mob_rank_t rank, uintptr_t start, size_t bytes) {
  for (auto view = views_.lower_bound({rank, 0});
       view != views_.end() && view->first.rank == rank;) {
    const uintptr_t first = view->first.first_page;
    const bool overlaps = first < start + bytes && start < first + view->second.bytes;
    view = overlaps ? drop(view) : std::next(view);
  }
}

size_t RemapViews::drop_stale(mob_rank_t rank, const RangeTable& table) {
  size_t left = 0;
  for (auto view = views_.lower_bound({rank, 0});
       view != views_.end() && view->first.rank == rank;) {
    // Another thread may use a view that is still listed.
    ListedRange range{};
    uint64_t version = 0;
    const bool is_listed =
        find_range(segment_, rank, table, view->second.start, &range, &version) &&
        range.start == view->second.start;
    view = is_listed ? std::next(view) : drop(view);
    left += is_listed ? 1 : 0;
  }
  return left;
}

void RemapViews::enter(mob_rank_t rank, TargetUse use, uintptr_t start, uint64_t bytes,
                       Found found) {
  const std::unique_lock lock(entering_, std::try_to_lock);
  if (!lock) return;
  ProcessBlock& block = segment_.own_process();
  // An owner that is a thread of this process empties the entries without being told where they
  // are.
  if (!segment_.peers().is_same_process(rank)) {
    block.entries.store(reinterpret_cast<uintptr_t>(mob_targets_), std::memory_order_relaxed);
  }
  block.is_entering.store(1, std::memory_order_relaxed);
  // Pairs with the fence in revoke(): either this thread sees the owner's change of the list, or
  // the owner sees that an entry is being made, and revokes it afterwards.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (found.table->version.load(std::memory_order_relaxed) == found.version) {
    target_remember(rank, use, start, target_limits(bytes), TargetPlace::kView);
  }
  block.is_entering.store(0, std::memory_order_release);  // pairs with the acquire in revoke()
}

// Empties the entry for this rank in a local peer, whatever it holds: an entry that is dropped by
// mistake is found again.
mob_status_t RemapViews::forget_at(mob_rank_t peer, uint64_t entries, TargetUse use,
                                   uintptr_t address) {
  const mob_target_t_& mine = target_entry(segment_.peers().rank(), use);
  const uintptr_t within =
      reinterpret_cast<uintptr_t>(mine.limit) - reinterpret_cast<uintptr_t>(mob_targets_);
  const TargetLimits none{};
  const int error = transport::cma_copy(segment_.peers().pid_of(peer), entries + within,
                                        none.data(), sizeof none, true);
  if (error == 0 || error == ESRCH) return MOB_OK;
  return base::fail_errno(MOB_ERR_SYSTEM, error,
                          "rank %d uses the memory at %p directly, and the kernel does not let "
                          "this process write to that one any more, to end it",
                          peer, reinterpret_cast<void*>(address));
}

mob_status_t RemapViews::revoke(uintptr_t address, uint64_t bytes) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in enter()
  for (mob_rank_t index = 0; index < segment_.peers().host().bound(); ++index) {
    const ProcessBlock& block = segment_.process(index);
    const auto has_gone = [&] {
      return segment_.peers().liveness().is_dead(index) ||
             segment_.peers().liveness().has_left(index);
    };
    while (block.is_entering.load(std::memory_order_acquire) != 0 && !has_gone()) sched_yield();
    const mob_rank_t peer = segment_.peers().job().rank_at(index);
    if (segment_.peers().is_same_process(peer)) {
      target_forget_all(segment_.peers().rank(), address, bytes);
      continue;
    }
    const uint64_t entries = block.entries.load(std::memory_order_relaxed);
    if (entries == 0 || has_gone()) continue;
    // The peer has entered no memory of this process then, and its process id here may be
    // another's.
    if (!segment_.peers().knows_pid_of(segment_.peers().rank()) ||
        !segment_.peers().knows_pid_of(peer))
      continue;
    for (const TargetUse use : {TargetUse::kBytes, TargetUse::kWords}) {
      if (const mob_status_t status = forget_at(peer, entries, use, address)) return status;
    }
  }
  return MOB_OK;
}

void RemapViews::close() {
  const std::lock_guard lock(mutex_);
  for (auto view = views_.begin(); view != views_.end();) view = drop(view);
}

}  // namespace mobius::engine
