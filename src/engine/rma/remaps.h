// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Exposed memory whose pages were moved into shared memory at their own address (MOB_EXPOSE_REMAP):
// its owner uses it as before, its host-mates find it in the window.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "engine/rma/remap_views.h"
#include "engine/segment/chunk_table.h"
#include "engine/segment/range_table.h"
#include "engine/segment/segment.h"
#include "os/pages.h"

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

  // Moves the pages of `bytes` (> 0) bytes and lets the others know. Where they are `anonymous`,
  // those that nobody has touched are zero and take no memory. After an error all is as before. One
  // thread at a time, here and in remove(); no other thread of the library runs, because what it
  // writes to may lie on these pages. Those of the program are stopped for that moment. `call`
  // names the public function in errors.
  mob_status_t add(const char* call, uintptr_t address, uint64_t bytes, bool anonymous);
  // Takes back what add() did for this address. After an error it still stands.
  mob_status_t remove(uintptr_t address);
  // At the end of the job, when no other process touches them any more, and this one none of the
  // others': the program keeps its memory. Pages to which a thread may write that cannot be stopped
  // stay where they are.
  void take_back();

  // A pointer here to bytes of a rank's moved memory; null if they do not lie in one piece of it.
  // Any thread.
  void* find(mob_rank_t rank, uintptr_t remote, size_t bytes) override;
  // The same, always in the window.
  void* find_in_window(mob_rank_t rank, uintptr_t remote, size_t bytes) override;
  // The same as find(), for who updates a word by atomic instructions.
  void* find_word(mob_rank_t rank, uintptr_t remote, size_t bytes) override;

 private:
  struct Moved {
    uint64_t end;  // of what was asked for
    uintptr_t first_page;
    uint64_t page_bytes;  // of all pages
    Region part;          // that holds them; no bytes where nobody else needs it
    bool is_anonymous;
  };

  bool others_need_them() const;
  mob_status_t move(const char* call, Moved* moved);
  mob_status_t move_back(const Moved& moved);
  os::SharedPlace place_of(const Region& part) const;
  void publish();
  struct Place {
    ListedRange range{};
    RemapViews::Found found{};
    uint64_t delta = 0;  // what to add to an address to have it here, in the window
  };
  bool locate(mob_rank_t rank, uintptr_t remote, size_t bytes, Place* place);
  void* look_up(mob_rank_t rank, uintptr_t remote, size_t bytes);
  void show_words(mob_rank_t rank, uintptr_t remote);
  static void forget_hits();

  Segment& segment_;
  RemapViews& views_;
  const Instrumentation& instrumentation_;
  RangeList list_;
  std::map<uintptr_t, Moved> moved_;  // by the address that was asked for; pages are disjoint
};

}  // namespace mobius::engine
