// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the two sides of a desk write on it, for desk.cpp and desk_target.cpp alone.

#include <mobius/transfer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/desk.h"
#include "os/scheduling.h"

namespace mobius::engine {

// What a request is about, beside its number.
enum What : uint16_t { kStretch, kBox, kSpans, kCombination, kCompareSwap };

// In DeskMemory::state, below the number of the last request. A request that was taken up stays so
// when it has been answered.
enum Phase : uint64_t { kWithdrawn, kLaidDown, kTakenUp };
inline constexpr unsigned kPhaseBits = 2;
constexpr uint64_t phase_of(uint64_t state) { return state & ((1 << kPhaseBits) - 1); }
constexpr uint64_t number_of(uint64_t state) { return state >> kPhaseBits; }
constexpr uint64_t state_of(uint64_t number, Phase phase) { return number << kPhaseBits | phase; }

// In the lowest bit of DeskMemory::answer, below the number.
inline constexpr uint64_t kDone = 0;
inline constexpr uint64_t kRefused = 1;

inline constexpr size_t kInRequest = 32;
inline constexpr size_t kInAnswer = 56;
inline constexpr size_t kMostSpans = 1024;
// In DeskMemory::put, of updates.
struct Update {
  uint8_t type;  // mob_type_t
  uint8_t op;    // mob_op_t
  bool fetches;
  bool has_scale;
  alignas(8) unsigned char scale[16];  // of a compare-swap: what is expected
  unsigned char operand[8];            // longer ones are in DeskMemory::data
};
static_assert(sizeof(Update) <= kInRequest);
// Where in DeskMemory::data what is fetched goes that has no room in the answer.
inline constexpr size_t kFetchedAt = Desk::kMostBytes / 2;
// Memory of more than that, holes included, is looked at run by run, so there may be few.
inline constexpr size_t kMostHull = size_t{192} << 10;

// The processor that the calling thread runs on, as both sides write it down; 0: nobody knows.
inline uint32_t this_processor() { return static_cast<uint32_t>(os::own_processor() + 1); }

// Valid as zeros. What is laid down is written by who holds the desk, the answer by the target.
struct DeskMemory {
  alignas(64) std::atomic<uint32_t> holder;  // rank of the origin, plus 1; 0: it is free
  // One line, of which a small put needs no other.
  alignas(64) std::atomic<uint64_t> state;
  uintptr_t remote;
  uint32_t bytes;
  uint16_t what;
  bool is_put;
  // Who was called, and answers, lets the origin go on if it is on that processor: its number, plus
  // 1. 0: nobody was called.
  uint32_t caller;
  // The same for a waiter that was woken in order to be awake for what comes next.
  std::atomic<uint32_t> wanted_by;
  alignas(8) unsigned char put[kInRequest];
  // One line, of which a small get needs no other.
  alignas(64) std::atomic<uint64_t> answer;
  alignas(8) unsigned char got[kInAnswer];
  // Boxes and spans: the memory that they lie within; and boxes.
  alignas(64) uintptr_t lowest;
  uint64_t hull_bytes;
  uint32_t count;  // of dimensions, or of spans
  uint64_t run_bytes;
  uint64_t counts[MOB_MAX_DIMENSIONS - 1];
  ptrdiff_t strides[MOB_MAX_DIMENSIONS - 1];
  alignas(64) mob_span_t spans[kMostSpans];
  alignas(64) unsigned char data[Desk::kMostBytes];  // in the order of the runs
};

}  // namespace mobius::engine
