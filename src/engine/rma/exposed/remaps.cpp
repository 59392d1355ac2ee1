// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/exposed/remaps.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/rma/exposed/moving.h"
#include "engine/rma/exposed/remap_cache.h"
#include "engine/segment/window/region.h"
#include "os/memory/fork_copies.h"
#include "os/memory/pages.h"

namespace mobius::engine {
namespace {

using base::fail;

constexpr uint64_t kNotMoved = UINT64_MAX;  // the place of pages that are the owner's alone

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// Whether whole pages can be moved.
mob_status_t check_pages(const char* call, uintptr_t first, uint64_t bytes) {
  const char* reason = os::why_not_shareable(first, bytes);
  if (reason == nullptr) return MOB_OK;
  return fail(MOB_ERR_ARGUMENT,
              "%s: the %zu bytes of whole pages at %p cannot be moved into shared memory: %s; "
              "mob_expose() takes them where they are without MOB_EXPOSE_REMAP",
              call, static_cast<size_t>(bytes), pointer(first), reason);
}

}  // namespace

Remaps::Remaps(Segment& segment, LocalHeap& local_heap, RemapViews& views,
               const Instrumentation& instrumentation)
    : segment_(segment),
      views_(views),
      instrumentation_(instrumentation),
      list_(segment, local_heap),
      kept_(segment) {}

void Remaps::open() { list_.open(segment_.own_process().remaps); }

mob_status_t Remaps::add(const char* call, uintptr_t address, uint64_t bytes, bool anonymous) {
  const uintptr_t first = os::page_start(address);
  const uint64_t page_bytes = os::page_start(address + bytes - 1) - first + os::page_bytes();
  for (const auto& [other, moved] : moved_) {
    if (first < moved.first_page + moved.page_bytes && moved.first_page < first + page_bytes) {
      return fail(MOB_ERR_STATE,
                  "%s: pages of the %zu bytes at %p were moved already, for what is exposed at %p; "
                  "withdraw that first, or expose both at once",
                  call, static_cast<size_t>(bytes), pointer(address), pointer(other));
    }
  }
  // Pages that keep their place were movable, and are looked at when they are shared again.
  if (!kept_.has(first, page_bytes)) {
    if (const mob_status_t status = check_pages(call, first, page_bytes)) return status;
  }
  if (const mob_status_t status = list_.reserve(moved_.size() + 1)) return status;
  const auto added =
      moved_.emplace(address, Moved{address + bytes, first, page_bytes, Region{}, anonymous}).first;
  bool is_moved = false;
  try {
    if (others_need_them()) {
      if (const mob_status_t status = move(call, &added->second)) {
        moved_.erase(added);
        return status;
      }
    }
    is_moved = true;
    publish();
    return MOB_OK;
  } catch (const std::bad_alloc&) {
    if (is_moved) {
      static_cast<void>(remove(address));
    } else {
      if (added->second.region.bytes != 0) drop_region(segment_, added->second.region);
      moved_.erase(added);
    }
    return fail(MOB_ERR_MEMORY, "%s: this process has no memory left", call);
  }
}

mob_status_t Remaps::remove(uintptr_t address) {
  auto removed = moved_.extract(address);
  const Moved& moved = removed.mapped();
  mob_status_t status = MOB_OK;
  try {
    publish();
    status = views_.revoke(address, moved.end - address);
    if (status == MOB_OK && moved.region.bytes != 0) {
      kept_.make_room("mob_withdraw", moved.page_bytes);
      if (keep(moved)) return MOB_OK;
      status = move_back(moved);
    }
  } catch (const std::bad_alloc&) {
    status = fail(MOB_ERR_MEMORY, "no memory to move pages back");
  }
  if (status != MOB_OK) {
    moved_.insert(std::move(removed));
    publish();
  } else if (moved.region.bytes != 0) {
    drop_region(segment_, moved.region);
  }
  return status;
}

bool Remaps::leave(uintptr_t address) {
  const auto found = moved_.find(address);
  if (found->second.region.bytes == 0) return false;
  auto removed = moved_.extract(found);
  const Moved& moved = removed.mapped();
  bool stays = false;
  try {
    publish();
    stays = views_.revoke(address, moved.end - address) == MOB_OK && keep(moved);
  } catch (const std::bad_alloc&) {
    stays = false;  // the caller asks for remove() then, which says so
  }
  if (stays) return true;
  moved_.insert(std::move(removed));
  publish();
  return false;
}

// Anonymous memory is the heap, which has more addresses than pages.
bool Remaps::keep(const Moved& moved) {
  if (moved.is_anonymous) return false;
  os::announce_move(moved.first_page, moved.page_bytes);
  return kept_.keep(moved.first_page, moved.page_bytes, moved.region);
}

void Remaps::take_back() {
  for (const auto& [address, moved] : moved_) {
    // Pages that cannot be moved back keep their contents: they are no region any more, whose
    // memory could be given back.
    if (moved.region.bytes != 0 && move_back(moved) != MOB_OK) {
      segment_.chunks().clear_region(moved.region);
    }
    target_forget_all(segment_.peers().rank(), address, moved.end - address);
  }
  moved_.clear();
  for (const Region& region : kept_.end("mob_finalize")) segment_.chunks().clear_region(region);
  forget_hits();
}

// Ranks that are threads of one process share all memory anyway.
bool Remaps::others_need_them() const {
  for (mob_rank_t index = 0; index < segment_.peers().host().bound(); ++index) {
    if (!segment_.peers().is_same_process(segment_.peers().job().rank_at(index))) return true;
  }
  return false;
}

os::SharedPlace Remaps::place_of(const Region& region) const {
  return {segment_.peers().host().segment(), job::kWindowOffset + region.offset};
}

mob_status_t Remaps::move(const char* call, Moved* moved) {
  const bool is_kept = kept_.has(moved->first_page, moved->page_bytes);
  if (is_kept) {
    os::announce_move(moved->first_page, moved->page_bytes);
    if (kept_.share(call, moved->first_page, moved->page_bytes, &moved->region)) {
      os::map_pages(moved->first_page, moved->page_bytes);
      return MOB_OK;
    }
  }
  kept_.give_up(call, moved->first_page, moved->page_bytes);
  if (is_kept) {
    if (const mob_status_t status = check_pages(call, moved->first_page, moved->page_bytes)) {
      return status;
    }
  }
  return move_anew(call, moved);
}

mob_status_t Remaps::make_place(const char* call, Moved* moved) {
  const auto memory = moved->is_anonymous ? RegionMemory::kAsUsed : RegionMemory::kReserved;
  const mob_status_t status = make_region(segment_, moved->page_bytes, memory, &moved->region);
  if (status == MOB_OK || kept_.is_empty()) return status;
  for (const Region& region : kept_.end(call)) segment_.chunks().clear_region(region);
  return make_region(segment_, moved->page_bytes, memory, &moved->region);
}

mob_status_t Remaps::move_anew(const char* call, Moved* moved) {
  if (const mob_status_t status = make_place(call, moved)) return status;
  const os::SharedPlace place = place_of(moved->region);
  mob_status_t status = os::begin_copies(moved->first_page, moved->page_bytes, place);
  if (status == MOB_OK) {
    os::announce_move(moved->first_page, moved->page_bytes);
    status = move_pages(call, [&] {
      return os::make_shared(moved->first_page, moved->page_bytes, moved->is_anonymous, place);
    });
    if (status == MOB_OK) {
      os::map_used_pages(moved->first_page, moved->page_bytes, place);
    } else {
      os::end_copies(moved->first_page, place);
    }
  }
  if (status != MOB_OK) drop_region(segment_, moved->region);
  return status;
}

mob_status_t Remaps::move_back(const Moved& moved) {
  const os::SharedPlace place = place_of(moved.region);
  os::announce_move(moved.first_page, moved.page_bytes);
  const std::vector<os::AddressRange> shared =
      os::still_shared(moved.first_page, moved.page_bytes, place);
  const mob_status_t status =
      move_pages("mob_withdraw", [&] { return os::make_private(shared, moved.first_page, place); });
  if (status == MOB_OK) os::end_copies(moved.first_page, place);
  return status;
}

void Remaps::publish() {
  std::vector<ListedRange> ranges;
  for (const auto& [address, moved] : moved_) {
    const bool is_moved = moved.region.bytes != 0;
    ranges.push_back({address, moved.end,
                      is_moved ? moved.region.offset + (address - moved.first_page) : kNotMoved});
  }
  list_.publish(ranges);
}

void* Remaps::find(mob_rank_t rank, uintptr_t remote, size_t bytes) {
  if (void* here = find_remapped_again(rank, remote, bytes)) return here;
  return segment_.peers().is_here(rank) ? look_up(rank, remote, bytes) : nullptr;
}

void* Remaps::find_word(mob_rank_t rank, uintptr_t remote, size_t bytes) {
  void* here = find(rank, remote, bytes);
  const bool has_address = here == pointer(remote) && !instrumentation_.hooked();
  if (has_address && target_is_due(rank, TargetUse::kWords)) show_words(rank, remote);
  return here;
}

// Lets inlined operations reach the words around one that they may update in the same way.
void Remaps::show_words(mob_rank_t rank, uintptr_t remote) {
  Place place;
  if (!locate(rank, remote, 1, &place) || !views_.show(rank, place.range, place.found)) {
    return;
  }
  const mob_rank_t index = segment_.peers().host_index(rank);
  segment_.accumulate_locks().admit_word(index, remote);
  const AccumulateLocks::Zone around = segment_.accumulate_locks().admitted_outside(
      index, remote, place.range.start, place.range.end);
  views_.enter(rank, TargetUse::kWords, around.start, around.bytes, place.found);
}

bool Remaps::locate(mob_rank_t rank, uintptr_t remote, size_t bytes, Place* place) {
  const mob_rank_t index = segment_.peers().host_index(rank);
  const RangeTable& table = segment_.process(index).remaps;
  place->found.table = &table;
  ListedRange& range = place->range;
  if (table.version.load(std::memory_order_acquire) == 0 ||
      !find_range(segment_, rank, table, remote, &range, &place->found.version) ||
      bytes > range.end - remote) {
    return false;
  }
  place->delta = 0;  // in the owner's own process the address is the same
  if (segment_.peers().is_same_process(rank)) return true;
  if (range.place == kNotMoved) return false;  // its owner was alone when it exposed the memory
  const void* here =
      segment_.find_here(rank, segment_.address_in(index, range.place), range.end - range.start);
  place->delta = reinterpret_cast<uintptr_t>(here) - range.start;
  return here != nullptr;
}

void* Remaps::find_in_window(mob_rank_t rank, uintptr_t remote, size_t bytes) {
  Place place;
  return segment_.peers().is_here(rank) && locate(rank, remote, bytes, &place)
             ? pointer(remote + place.delta)
             : nullptr;
}

void* Remaps::look_up(mob_rank_t rank, uintptr_t remote, size_t bytes) {
  Place place;
  if (!locate(rank, remote, bytes, &place)) return nullptr;
  // A hook must see every operation, so none may use the cache.
  if (!instrumentation_.hooked()) {
    if (views_.show(rank, place.range, place.found)) place.delta = 0;
    RemapHit& hit = remap_hit_of(rank);
    change_remap_hit(hit, [&] {
      hit.rank.store(rank, std::memory_order_relaxed);
      hit.start.store(place.range.start, std::memory_order_relaxed);
      hit.bytes.store(place.range.end - place.range.start, std::memory_order_relaxed);
      hit.delta.store(place.delta, std::memory_order_relaxed);
      hit.current.store(&place.found.table->version, std::memory_order_relaxed);
      hit.version.store(place.found.version, std::memory_order_relaxed);
    });
  }
  return pointer(remote + place.delta);
}

void Remaps::forget_hits() {
  for (mob_rank_t rank = 0; rank < static_cast<mob_rank_t>(kRemapHits); ++rank) {
    RemapHit& hit = remap_hit_of(rank);
    change_remap_hit(hit, [&] { hit.bytes.store(0, std::memory_order_relaxed); });
  }
}

}  // namespace mobius::engine
