// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shared memory of messages: an inbox for each process, and in the receiver's inbox one ring
// for each sender that has used it. All of it is valid as zeros.

#include <mobius/message.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "engine/segment/ring_size.h"
#include "os/sync/hybrid_lock.h"
#include "os/sync/ring.h"

namespace mobius::engine {

// Identifiers that programs use, and those behind them that the engine keeps for itself.
inline constexpr unsigned kPublicHandlers = MOB_MAX_HANDLERS;
inline constexpr unsigned kHandlers = kPublicHandlers + 64;
inline constexpr unsigned kServeHandler = kPublicHandlers;  // carries out transfers at the target

inline constexpr mob_rank_t kMostSenders = 4096;

// The receiver polls the rings of the first senders one by one; later senders mark their rings in a
// bitmap.
inline constexpr uint32_t kPolledRings = 16;

// Bytes of a ring: four records of the largest size, so that a long payload is written and read at
// the same time, and little enough for every pair of processes to have one.
inline constexpr size_t kRingCapacity = size_t{64} << 10;

// Where a process' rings are, and for which messages it has handlers.
struct Inbox {
  alignas(64) os::HybridLockWord lock;  // for changes of which rings there are, and of `vacant`
  std::atomic<uint32_t> rings;          // up to here they are there for the receiver to use
  // The first of the rings whose senders are gone: its index, plus 1; 0: none. Guarded by the lock.
  std::atomic<uint32_t> vacant;
  static constexpr size_t kRingsPerChunk = 30;
  std::atomic<uint32_t> chunks[(kMostSenders + kRingsPerChunk - 1) / kRingsPerChunk];
  // Larger rings of one size.
  struct LargerRings {
    std::atomic<uint32_t> made;
    std::atomic<uint32_t> chunks[4];
  };
  LargerRings wide;
  LargerRings large;
  // One bit per handler that is registered.
  alignas(64) std::atomic<uint64_t> handlers[kHandlers / 64];
  bool has_handler(unsigned id) const {
    // Acquire pairs with the release in Messages::register_handler().
    return (handlers[id / 64].load(std::memory_order_acquire) >> (id % 64) & 1) != 0;
  }
  // One bit per ring from kPolledRings on: something was written since the receiver looked.
  alignas(64) std::atomic<uint64_t> written[kMostSenders / 64];
};

// A payload in its sender's memory that both ends copy together, part by part until all is claimed:
// a sender that waits has nothing better to do.
struct SharedCopy {
  alignas(64) std::atomic<uint64_t> number;   // of the message that the rest is about; written last
  uint64_t to;                                // where it goes, in the receiver
  std::atomic<uint64_t> claimed;              // up to here somebody copies it, or has
  alignas(64) std::atomic<uint64_t> settled;  // bytes that the sender claimed and is done with
  // The part of these that the sender could not copy. It claims nothing any more afterwards.
  uint64_t failed_at;
  uint64_t failed_bytes;
};

// Claims the next part of a payload for the caller. Returns its bytes, 0 when all is claimed.
inline size_t claim_part(SharedCopy& copy, size_t payload_bytes, size_t* offset) {
  constexpr size_t kLeast = size_t{32} << 10;
  uint64_t claimed = copy.claimed.load(std::memory_order_relaxed);
  size_t part = 0;
  do {
    if (claimed >= payload_bytes) return 0;
    // Parts shrink, so that both are done at about the same time.
    part = std::max((payload_bytes - claimed) / 4, kLeast);
    if (part > payload_bytes - claimed) part = payload_bytes - claimed;
  } while (!copy.claimed.compare_exchange_weak(claimed, claimed + part, std::memory_order_relaxed));
  *offset = claimed;
  return part;
}

// State that the two ends of a stream share besides the records.
struct StreamHead {
  mob_rank_t sender;
  std::atomic<uint32_t> starved;  // the sender waits for room
  // Numbers of messages in the ring: the last one whose payload was copied from its sender's
  // memory, the last one for which that failed, and the last one whose completion handler has
  // returned.
  alignas(64) std::atomic<uint64_t> taken;
  std::atomic<uint64_t> refused;
  std::atomic<uint64_t> completed;
  // Between hosts: the number of messages that named a handler or a counter that the target does
  // not have, times kUnknownCount, plus the id of the last such handler, or kUnknownCounter.
  std::atomic<uint64_t> unknown;
  static constexpr uint64_t kUnknownCount = 1 << 16;
  static constexpr uint64_t kUnknownCounter = kUnknownCount - 1;

  void note_unknown(uint64_t what) {
    const uint64_t count = unknown.load(std::memory_order_relaxed) / kUnknownCount + 1;
    unknown.store(count * kUnknownCount + what, std::memory_order_release);
  }
  SharedCopy copy;
};

// Where a larger ring is.
struct WireMoved {
  uint64_t offset;  // in the window
  uint64_t capacity;
};

struct MessageRing : StreamHead {
  uint32_t next_vacant;  // as Inbox::vacant
  WireMoved larger;      // made for a sender; the next one in this ring uses it, too
  alignas(64) unsigned char memory[os::ring_footprint(kRingCapacity)];
};
inline constexpr size_t kMessageRingBytes = size_t{68} << 10;  // whole pages
static_assert(sizeof(MessageRing) <= kMessageRingBytes);
static_assert(kWideRing.most <= std::size(Inbox::LargerRings{}.chunks) * kWideRing.per_chunk);
static_assert(kLargeRing.most <= std::size(Inbox::LargerRings{}.chunks) * kLargeRing.per_chunk);

// A message is one record of kind kFirst and as many kMore as its payload needs. kMoved, a
// WireMoved, says in which larger ring the stream goes on; there is one at most. kNewSender is the
// first record in a ring that was vacant.
enum RecordKind : uint32_t {
  kFirst,
  kMore,
  kMoved,
  kNewSender,
};

// Starts the record kFirst. After it: a WireNotify if kHasNotify, the user's header padded to a
// multiple of kRingPayloadAlignment, and as much of the payload as the record holds; or, if
// kInPlace, the payload's address in its sender, from whose memory the receiver takes it. Where it
// cannot, it refuses, and the payload comes in records kMore; the sender begins no other message
// before the receiver has answered.
struct WireMessage {
  uint64_t payload_bytes;
  uint16_t id;
  uint16_t header_bytes;
  uint32_t flags;
};
inline constexpr uint32_t kHasNotify = 1;
inline constexpr uint32_t kInPlace = 2;

struct WireNotify {
  mob_counter_t target_counter;
  mob_counter_t completion_counter;
};

constexpr size_t padded(size_t bytes) {
  return (bytes + os::kRingPayloadAlignment - 1) & ~(os::kRingPayloadAlignment - 1);
}
static_assert(sizeof(WireMessage) == os::kRingPayloadAlignment);
static_assert(sizeof(WireNotify) == os::kRingPayloadAlignment);

}  // namespace mobius::engine
