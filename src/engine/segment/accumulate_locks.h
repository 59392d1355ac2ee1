// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What excludes accumulates into one process from each other: locks, one for each stripe of its
// memory (transport/shm/accumulate.h).
//
// Updates of single words, mob_fetch_add8() and its kin, take no lock: they are one instruction in
// the caller. So that accumulates of integers may be loops under a lock all the same, who is about
// to update words somewhere first admits words there: says so in the marks of that memory, then
// takes its lock once, so that nobody is left inside who did not see them. From then on accumulates
// combine the integers there by atomic instructions, too.
//
// "There" is a zone of 1 KiB at first. Who goes on to update words in other zones of a part admits
// more of it each time, up to all of it: each new place takes a call out of line. Of memory that
// does not lie in the window it is a whole stripe once too many zones were admitted.

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/segment/chunk_table.h"
#include "engine/segment/segment_layout.h"
#include "transport/shm/accumulate.h"
#include "transport/shm/element.h"

namespace mobius::engine {

class Segment;

class AccumulateLocks {
 public:
  explicit AccumulateLocks(Segment& segment) : segment_(segment) {}

  // What is to be known of the block at an address of a process of this host.
  transport::WordsIn words_in(mob_rank_t host_index, uintptr_t address) const;

  // When it returns, the word of at most 8 bytes at an aligned address of a process of this host
  // may be updated by atomic instructions; whether it could not before. Any thread.
  bool admit_word(mob_rank_t host_index, uintptr_t address) {
    const uint64_t zone = transport::word_zones(address, 1);
    if ((words_in(host_index, address).admitted & zone) != 0) [[likely]] {
      return false;
    }
    admit(host_index, address);
    return true;
  }

  // The stretch of a part around a word that was admitted in which all words are; as bytes of the
  // window.
  struct Zone {
    uint64_t start;
    uint64_t bytes;
  };
  Zone admitted_around(const Region& part, uint64_t offset) const;
  // The same of memory that does not lie in the window, from `begin` to before `end`; as addresses
  // of its process.
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
  // How often this process had to admit words of a part, for the parts that were last of their
  // kind.
  struct Admissions {
    std::atomic<uint64_t> part = 0;  // its offset in the window, plus 1
    std::atomic<uint32_t> times = 0;
  };
  static constexpr size_t kRemembered = 64;

  [[gnu::cold]] void admit(mob_rank_t host_index, uintptr_t address);
  void admit_in_window(mob_rank_t host_index, uint64_t offset, const Region& part);
  uint32_t count_admission(const Region& part);
  void wait_for_stripes(mob_rank_t host_index, uintptr_t address, uint64_t bytes);
  void admit_outside(mob_rank_t host_index, uintptr_t address);

  Segment& segment_;
  std::array<Admissions, kRemembered> admissions_;
};

}  // namespace mobius::engine
