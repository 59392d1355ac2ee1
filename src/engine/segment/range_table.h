// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A list of address ranges that a process keeps in shared memory and that local peers search
// without a lock while it may change. The owner of the list says what its ranges mean
// (rma/exposed/exposures.h, rma/exposed/remaps.h).

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mobius::engine {

class LocalHeap;
class Segment;

// In the process block: where the list is. Only its owner changes it; `version` is odd during a
// change, and 0 if there never was a list. Valid as zeros.
struct RangeTable {
  alignas(64) std::atomic<uint64_t> version;
  std::atomic<uint64_t> offset;  // of the list, in the window
  std::atomic<uint64_t> count;   // of ranges
};

struct ListedRange {
  uint64_t start;
  uint64_t end;
  uint64_t place;  // where the bytes are, if not there alone: an offset in the window
};

// The owner's side. One thread at a time.
class RangeList {
 public:
  RangeList(Segment& segment, LocalHeap& local_heap) : segment_(segment), local_heap_(local_heap) {}

  void open(RangeTable& table) { table_ = &table; }

  // Makes room for so many ranges; publish() of no more cannot fail then.
  mob_status_t reserve(size_t count);
  // Publishes these ranges, which are sorted and disjoint.
  void publish(const std::vector<ListedRange>& ranges);

 private:
  Segment& segment_;
  LocalHeap& local_heap_;
  RangeTable* table_ = nullptr;
  ListedRange* ranges_ = nullptr;  // in shared memory
  size_t capacity_ = 0;
};

// Finds the last range that starts at or before an address and reaches it; false if there is none.
// `version` is the version of the table that was searched. Any thread.
bool find_range(Segment& segment, mob_rank_t rank, const RangeTable& table, uintptr_t address,
                ListedRange* found, uint64_t* version);

}  // namespace mobius::engine
