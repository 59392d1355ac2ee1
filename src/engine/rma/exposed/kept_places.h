// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Places in shared memory that withdrawn pages keep for a while. The pages are the program's own
// again, as views of their place (os/memory/private_views.h). If the same pages are exposed again,
// only those are copied that the program has written meanwhile: programs make a window of the same
// memory again and again.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/segment/window/chunk_table.h"
#include "os/memory/pages.h"

namespace mobius::engine {

class Segment;

// One thread at a time.
class KeptPlaces {
 public:
  explicit KeptPlaces(Segment& segment) : segment_(segment) {}
  KeptPlaces(const KeptPlaces&) = delete;
  KeptPlaces& operator=(const KeptPlaces&) = delete;

  // Makes the shared pages of a region a view, and owns the region from then on. False if the pages
  // have to be copied, or if there is no room; then nothing has changed. Threads may write to the
  // pages meanwhile.
  bool keep(uintptr_t first_page, uint64_t page_bytes, const Region& region);
  bool has(uintptr_t first_page, uint64_t page_bytes) const;

  // The others are for a caller who may move pages (Remaps::add()).

  // Shares pages again, and gives their region away. False if they are no longer there as a whole.
  bool share(const char* call, uintptr_t first_page, uint64_t page_bytes, Region* region);
  // Gives up the places of all pages among these.
  void give_up(const char* call, uintptr_t first_page, uint64_t page_bytes);
  // Gives up the oldest places until keep() has room for so much.
  void make_room(const char* call, uint64_t page_bytes);
  // Gives up all places. Returns the regions that pages still depend on.
  std::vector<Region> end(const char* call);
  bool is_empty() const { return kept_.empty(); }

 private:
  struct Kept {
    uintptr_t first_page;
    uint64_t page_bytes;
    Region region;
  };
  using All = std::vector<Kept>;

  bool has_room(uint64_t page_bytes) const;
  os::SharedPlace place_of(const Region& region) const;
  // The next one. One that cannot be given up stays.
  All::iterator give_up(const char* call, All::iterator kept);

  Segment& segment_;
  All kept_;  // the oldest first
};

}  // namespace mobius::engine
