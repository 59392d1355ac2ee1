// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the two sides of a desk write on it, for desk.cpp and desk_target.cpp alone.

#include <mobius/transfer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/rma/delegation.h"
#include "os/scheduling.h"
#include "transport/shm/copy.h"

namespace mobius::engine {

// What a request is about, beside its number.
enum What : uint16_t { kStretch, kBox, kSpans, kCombination, kCompareSwap };

// In Request::state, below its number. A request that was taken up stays so when it has been
// answered.
enum Phase : uint64_t { kWithdrawn, kLaidDown, kTakenUp };
inline constexpr unsigned kPhaseBits = 2;
constexpr uint64_t phase_of(uint64_t state) { return state & ((1 << kPhaseBits) - 1); }
constexpr uint64_t number_of(uint64_t state) { return state >> kPhaseBits; }
constexpr uint64_t state_of(uint64_t number, Phase phase) { return number << kPhaseBits | phase; }

// In the lowest bit of Request::answer, below the number.
inline constexpr uint64_t kDone = 0;
inline constexpr uint64_t kRefused = 1;

inline constexpr size_t kInRequest = 32;
inline constexpr size_t kInAnswer = 56;
inline constexpr size_t kMostSpans = 1024;
// In Request::put, of updates.
struct Update {
  uint8_t type;  // mob_type_t
  uint8_t op;    // mob_op_t
  bool fetches;
  bool has_scale;
  alignas(8) unsigned char scale[16];  // of a compare-swap: what is expected
  unsigned char operand[8];            // longer ones are in DelegationSlots::data
};
static_assert(sizeof(Update) <= kInRequest);
// Where in DelegationSlots::data what is fetched goes that has no room in the answer.
inline constexpr size_t kFetchedAt = Delegation::kMostAtOnce / 2;

// The processor that the calling thread runs on, as both sides write it down; 0: nobody knows.
inline uint32_t this_processor() { return static_cast<uint32_t>(os::own_processor() + 1); }

// Written by who holds the desk, but for the answer, which the target writes.
struct Request {
  // One line, of which a small put needs no other.
  alignas(64) std::atomic<uint64_t> state;
  uintptr_t remote;
  uint32_t bytes;
  uint16_t what;
  bool is_put;
  bool goes_on;  // in the next place, wherever that is laid down yet
  // Who was called, and answers, lets the origin go on if it is on that processor: its number, plus
  // 1. 0: nobody was called.
  uint32_t caller;
  // In the first one the same for a waiter that was woken in order to be awake for what comes next.
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
};

// Valid as zeros.
struct DelegationSlots {
  alignas(64) std::atomic<uint32_t> holder;  // rank of the origin, plus 1; 0: it is free
  // The first is for what comes alone; all of them, in turn, for what comes in pieces.
  Request requests[Delegation::kPlaces];
  alignas(64) mob_span_t spans[kMostSpans];
  // In the order of the runs: of all that comes alone, or a piece for each place.
  alignas(64) unsigned char data[Delegation::kMostAtOnce];

  unsigned char* data_of(const Request& request) {
    return data + static_cast<size_t>(&request - requests) * Delegation::kPieceBytes;
  }
};

// Has `pack(to)` put bytes that lie in runs one after the other, on a desk. Another processor has
// its lines: where stores of short runs fetch each of them, one long copy just takes them over.
template <typename Pack>
void pack_in_slots(unsigned char* to, size_t bytes, size_t run_bytes, Pack pack) {
  constexpr size_t kLong = 4096;
  unsigned char* aside = run_bytes < kLong && bytes >= kLong ? Delegation::packing_space() : nullptr;
  pack(aside != nullptr ? aside : to);
  if (aside != nullptr) transport::copy(to, aside, bytes);
}

}  // namespace mobius::engine
