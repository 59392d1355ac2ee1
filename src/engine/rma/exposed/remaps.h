// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Exposed memory whose pages were moved into shared memory at their own address (MOB_EXPOSE_REMAP):
// its owner uses it as before, and its local peers find it in the window.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "engine/rma/exposed/kept_places.h"
#include "engine/rma/exposed/remap_views.h"
#include "engine/segment/range_table.h"
#include "engine/segment/segment.h"
#include "engine/segment/window/chunk_table.h"
#include "os/memory/pages.h"

namespace mobius::engine {

class Instrumentation;
class LocalHeap;

class Remaps final : public RemappedMemory {
 public:
  Remaps(Segment& segment, LocalHeap& local_heap, RemapViews& views,
         const Instrumentation& instrumentation);
  Remaps(const Remaps&) = delete;
  Remaps& operator=(const Remaps&) = delete;

  void open();

  // Moves the pages of `bytes` (> 0) bytes and publishes the range. With `anonymous`, pages that
  // were never touched are zero and take no memory. After an error nothing has changed. One thread
  // at a time, here and in remove(). No other thread of the library runs, because it might write to
  // these pages; threads of the program are stopped meanwhile. `call` names the public function in
  // errors.
  mob_status_t add(const char* call, uintptr_t address, uint64_t bytes, bool anonymous);
  // Undoes add() for this address. After an error the memory is still remapped.
  mob_status_t remove(uintptr_t address);
  // The same, if the pages keep their place and need not move; else false. Threads of the library
  // may run.
  bool leave(uintptr_t address);
  // Moves all pages back at the end of the job, so that the program keeps its memory. No other
  // process accesses them any more, and this process none of the others'. Pages stay in shared
  // memory if a thread that cannot be stopped may write to them.
  void take_back();

  // A pointer here to bytes of a rank's remapped memory; null if they do not lie in one remapped
  // range. Any thread.
  void* find(mob_rank_t rank, uintptr_t remote, size_t bytes) override;
  // The same, but always an address in the window.
  void* find_in_window(mob_rank_t rank, uintptr_t remote, size_t bytes) override;
  // The same as find(), for callers that update a word by atomic instructions.
  void* find_word(mob_rank_t rank, uintptr_t remote, size_t bytes) override;

 private:
  struct Moved {
    uint64_t end;  // of the requested range
    uintptr_t first_page;
    uint64_t page_bytes;  // of all pages
    Region region;        // holds the pages; no bytes where no other process needs it
    bool is_anonymous;
  };

  bool others_need_them() const;
  mob_status_t move(const char* call, Moved* moved);
  mob_status_t move_anew(const char* call, Moved* moved);
  mob_status_t make_place(const char* call, Moved* moved);
  bool keep(const Moved& moved);
  mob_status_t move_back(const Moved& moved);
  os::SharedPlace place_of(const Region& region) const;
  void publish();
  struct Place {
    ListedRange range{};
    RemapViews::Found found{};
    uint64_t delta = 0;  // added to a remote address it gives the address here
  };
  bool locate(mob_rank_t rank, uintptr_t remote, size_t bytes, Place* place);
  void* look_up(mob_rank_t rank, uintptr_t remote, size_t bytes);
  void show_words(mob_rank_t rank, uintptr_t remote);
  static void forget_hits();

  Segment& segment_;
  RemapViews& views_;
  const Instrumentation& instrumentation_;
  RangeList list_;
  KeptPlaces kept_;
  std::map<uintptr_t, Moved> moved_;  // by requested address; their pages are disjoint
};

}  // namespace mobius::engine
