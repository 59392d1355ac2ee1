// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Layout of the delegation slots in shared memory, for delegation.cpp and delegation_server.cpp
// alone.

#include <mobius/transfer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/rma/delegation.h"
#include "os/cpu/scheduling.h"
#include "transport/shm/copy.h"

namespace mobius::engine {

// Kind of a request.
enum What : uint16_t { kRange, kBox, kSpans, kCombination, kCompareSwap };

// State of a request, in Request::state below its number. An answered request stays kTakenUp.
enum Phase : uint64_t { kWithdrawn, kPosted, kTakenUp };
inline constexpr unsigned kPhaseBits = 2;
constexpr uint64_t phase_of(uint64_t state) { return state & ((1 << kPhaseBits) - 1); }
constexpr uint64_t number_of(uint64_t state) { return state >> kPhaseBits; }
constexpr uint64_t state_of(uint64_t number, Phase phase) { return number << kPhaseBits | phase; }

// Result of a request, in the lowest bit of Request::answer below its number.
inline constexpr uint64_t kDone = 0;
inline constexpr uint64_t kRefused = 1;

inline constexpr size_t kInRequest = 32;
inline constexpr size_t kInAnswer = 56;
inline constexpr size_t kMostSpans = 1024;
// In Request::put, for accumulates and compare-swaps.
struct Update {
  uint8_t type;  // mob_type_t
  uint8_t op;    // mob_op_t
  bool fetches;
  bool has_scale;
  alignas(8) unsigned char scale[16];  // for a compare-swap: the expected value
  unsigned char operand[8];            // longer operands are in DelegationSlots::data
};
static_assert(sizeof(Update) <= kInRequest);
// Offset in DelegationSlots::data of fetched values that do not fit into the answer.
inline constexpr size_t kFetchedAt = Delegation::kMostAtOnce / 2;

// The calling thread's processor as both sides write it down; 0: unknown.
inline uint32_t this_processor() { return static_cast<uint32_t>(os::own_processor() + 1); }

// The holder of the slots writes everything but the answer, which the target writes.
struct Request {
  // One cache line; a small put needs no other.
  alignas(64) std::atomic<uint64_t> state;
  uintptr_t remote;
  uint32_t bytes;
  uint16_t what;
  bool is_put;
  bool goes_on;  // the transfer continues in the next slot, even if that is not posted yet
  // If the origin called the target: its processor, plus 1. A target that answers on that processor
  // yields it back. 0: not called.
  uint32_t caller;
  // In the first slot only: the processor, plus 1, of an origin that woke a waiter to keep it awake
  // for later requests. The waiter yields that processor back in the same way.
  std::atomic<uint32_t> wanted_by;
  alignas(8) unsigned char put[kInRequest];
  // One cache line; a small get needs no other.
  alignas(64) std::atomic<uint64_t> answer;
  alignas(8) unsigned char got[kInAnswer];
  // For boxes and spans: the range of memory around them. The rest is for boxes.
  alignas(64) uintptr_t lowest;
  uint64_t hull_bytes;
  uint32_t count;  // of dimensions, or of spans
  uint64_t run_bytes;
  uint64_t counts[MOB_MAX_DIMENSIONS - 1];
  ptrdiff_t strides[MOB_MAX_DIMENSIONS - 1];
};

// Valid as zeros.
struct DelegationSlots {
  alignas(64) std::atomic<uint32_t> holder;  // rank of the origin, plus 1; 0: free
  // A single request uses the first slot. The pieces of a transfer use all of them in turn.
  Request requests[Delegation::kSlots];
  alignas(64) mob_span_t spans[kMostSpans];
  // Bytes in the order of the runs: of a single request, or one piece for each slot.
  alignas(64) unsigned char data[Delegation::kMostAtOnce];

  unsigned char* data_of(const Request& request) {
    return data + static_cast<size_t>(&request - requests) * Delegation::kPieceBytes;
  }
};

// Has `pack(to)` write packed runs into a slot. Another processor owns the slot's cache lines.
// Stores of short runs would fetch each line; one long copy takes them over without.
template <typename Pack>
void pack_in_slots(unsigned char* to, size_t bytes, size_t run_bytes, Pack pack) {
  constexpr size_t kLong = 4096;
  unsigned char* aside =
      run_bytes < kLong && bytes >= kLong ? Delegation::packing_space() : nullptr;
  pack(aside != nullptr ? aside : to);
  if (aside != nullptr) transport::copy(to, aside, bytes);
}

}  // namespace mobius::engine
