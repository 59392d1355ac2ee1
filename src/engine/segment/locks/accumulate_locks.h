// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Locks that make accumulates into one process exclude each other: one for each stripe of its
// memory (transport/shm/accumulate.h).
//
// Updates of single words, such as mob_fetch_add8(), take no lock: they are one instruction in the
// caller. Accumulates of integers are plain loops under a lock all the same, as long as no word of
// that memory was ever updated. A process that is about to update a word first *admits* words
// there: it marks the zone in shared memory, then locks and unlocks once, so that every holder that
// missed the mark has left. From then on accumulates combine the integers of that zone by atomic
// instructions, too.
//
// A zone is 1 KiB at first. A process that goes on to update words in other zones of a region
// admits more of it each time, up to all of it, because each new zone takes a call out of line. In
// memory outside the window, a whole stripe is admitted once too many of its zones were.

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/segment/segment_layout.h"
#include "engine/segment/window/chunk_table.h"
#include "transport/shm/accumulate.h"
#include "transport/shm/element.h"

namespace mobius::engine {

class Segment;

class AccumulateLocks {
 public:
  explicit AccumulateLocks(Segment& segment) : segment_(segment) {}

  // In the engine of a guest of another job (engine/guests.h): memory of this process outside the
  // other job's window has the locks and marks of the process' own job, which guard it there, too.
  void share(AccumulateLocks& home) { home_ = &home; }

  // Which zones of the block at an address of a process of this host are marked or admitted.
  transport::WordsIn words_in(mob_rank_t host_index, uintptr_t address) const;

  // When it returns, the word of at most 8 bytes at an aligned address of a process of this host
  // may be updated by atomic instructions. Returns whether this call admitted it. Any thread.
  bool admit_word(mob_rank_t host_index, uintptr_t address) {
    const uint64_t zone = transport::word_zones(address, 1);
    if ((words_in(host_index, address).admitted & zone) != 0) [[likely]] {
      return false;
    }
    admit(host_index, address);
    return true;
  }

  // The bytes of a region around an admitted word in which all words are admitted; as offsets in
  // the window.
  struct Zone {
    uint64_t start;
    uint64_t bytes;
  };
  Zone admitted_around(const Region& region, uint64_t offset) const;
  // The same for memory outside the window, within `begin` to `end`; as addresses of its process.
  Zone admitted_outside(mob_rank_t host_index, uintptr_t address, uintptr_t begin,
                        uintptr_t end) const;

  // Combines rows of `count` elements that lie in the `bytes` bytes from `address` on and are
  // reached where the rows say; together no more than a block has. False, with nothing done, if
  // they lie in two blocks, many of them where words are updated, too, or what is fetched is the
  // first word ever; accumulate() does all.
  bool accumulate_few(mob_rank_t host_index, uintptr_t address, size_t bytes,
                      const transport::Rows& rows, size_t count, const transport::Combination& what,
                      const transport::ElementOp& element);

  // Combines elements of a process of this host, reached at their address there plus
  // `remote_delta`.
  void accumulate(mob_rank_t host_index, const transport::Shape& shape, ptrdiff_t remote_delta,
                  const transport::Combination& combination);

 private:
  // How often this process had to admit words of a region, for the regions admitted last.
  struct Admissions {
    std::atomic<uint64_t> region = 0;  // its offset in the window, plus 1
    std::atomic<uint32_t> times = 0;
  };
  static constexpr size_t kRemembered = 64;

  [[gnu::cold]] void admit(mob_rank_t host_index, uintptr_t address);
  void admit_in_window(mob_rank_t host_index, uint64_t offset, const Region& region);
  uint32_t count_admission(const Region& region);
  void wait_for_stripes(mob_rank_t host_index, uintptr_t address, uint64_t bytes);
  void admit_outside(mob_rank_t host_index, uintptr_t address);
  // Whether `home_` guards the memory.
  bool is_at_home(mob_rank_t host_index, uintptr_t address) const;
  mob_rank_t own_index() const;

  Segment& segment_;
  AccumulateLocks* home_ = nullptr;
  std::array<Admissions, kRemembered> admissions_;
};

}  // namespace mobius::engine
