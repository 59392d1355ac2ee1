// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/exposed/kept_places.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engine/rma/exposed/moving.h"
#include "engine/segment/segment.h"
#include "engine/segment/window/region.h"
#include "os/memory/fork_copies.h"
#include "os/memory/private_views.h"

namespace mobius::engine {
namespace {

// Less is copied as soon as it is asked for.
constexpr uint64_t kLeastBytes = uint64_t{64} << 10;
// Memory of the program that it has given back to the system meanwhile is kept, too, and what it
// writes to takes memory twice.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr size_t kMostPlaces = 16;

}  // namespace

os::SharedPlace KeptPlaces::place_of(const Region& region) const {
  return {segment_.peers().host().segment(), job::kWindowOffset + region.offset};
}

bool KeptPlaces::has_room(uint64_t page_bytes) const {
  const uint64_t sum =
      std::accumulate(kept_.begin(), kept_.end(), page_bytes,
                      [](uint64_t bytes, const Kept& kept) { return bytes + kept.page_bytes; });
  return kept_.size() < kMostPlaces && sum <= kMostBytes;
}

bool KeptPlaces::keep(uintptr_t first_page, uint64_t page_bytes, const Region& region) {
  if (page_bytes < kLeastBytes || !has_room(page_bytes)) return false;
  kept_.reserve(kept_.size() + 1);
  if (!os::make_view(first_page, page_bytes, place_of(region))) return false;
  kept_.push_back({first_page, page_bytes, region});
  return true;
}

bool KeptPlaces::has(uintptr_t first_page, uint64_t page_bytes) const {
  return std::ranges::any_of(kept_, [=](const Kept& kept) {
    return kept.first_page == first_page && kept.page_bytes == page_bytes;
  });
}

bool KeptPlaces::share(const char* call, uintptr_t first_page, uint64_t page_bytes,
                       Region* region) {
  // The latest, if earlier ones of these pages could not be given up.
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [=](const Kept& kept) {
    return kept.first_page == first_page && kept.page_bytes == page_bytes;
  });
  if (found == kept_.rend()) return false;
  const os::SharedPlace place = place_of(found->region);
  const mob_status_t status = move_pages(
      call, [&] { return os::share_view(first_page, page_bytes, place) ? MOB_OK : MOB_ERR_STATE; });
  if (status != MOB_OK) return false;
  *region = found->region;
  kept_.erase(std::prev(found.base()));
  return true;
}

KeptPlaces::All::iterator KeptPlaces::give_up(const char* call, All::iterator kept) {
  const os::SharedPlace place = place_of(kept->region);
  if (move_pages(call, [&] { return os::end_views(place, kept->page_bytes); }) != MOB_OK) {
    return std::next(kept);
  }
  os::end_copies(kept->first_page, place);
  drop_region(segment_, kept->region);
  return kept_.erase(kept);
}

void KeptPlaces::give_up(const char* call, uintptr_t first_page, uint64_t page_bytes) {
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    const bool overlaps = first_page < kept->first_page + kept->page_bytes &&
                          kept->first_page < first_page + page_bytes;
    kept = overlaps ? give_up(call, kept) : std::next(kept);
  }
}

void KeptPlaces::make_room(const char* call, uint64_t page_bytes) {
  if (page_bytes < kLeastBytes || page_bytes > kMostBytes) return;
  for (auto kept = kept_.begin(); kept != kept_.end() && !has_room(page_bytes);) {
    kept = give_up(call, kept);
  }
}

std::vector<Region> KeptPlaces::end(const char* call) {
  for (auto kept = kept_.begin(); kept != kept_.end();) kept = give_up(call, kept);
  std::vector<Region> left;
  for (const Kept& kept : kept_) left.push_back(kept.region);
  kept_.clear();
  return left;
}

}  // namespace mobius::engine
