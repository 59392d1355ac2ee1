// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The receiving side of a stream of records: runs handlers and moves payloads.

#include <mobius/message.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/message/message_payload.h"
#include "engine/message/message_services.h"
#include "engine/segment/message_wire.h"
#include "engine/segment/segment_layout.h"
#include "os/sync/ring.h"

namespace mobius::engine {

class HandlerTable;
struct Handler;

// A token names the rank to reply to.
inline constexpr uint64_t kTokenMark = uint64_t{0x4d54} << 48;
constexpr mob_token_t token_of(mob_rank_t source) {
  return kTokenMark | static_cast<uint32_t>(source);
}

// The rank of a token; negative if it is not one.
constexpr mob_rank_t token_source(mob_token_t token) {
  return token >> 32 == kTokenMark >> 32 ? static_cast<mob_rank_t>(token & UINT32_MAX) : -1;
}

// Used by one thread at a time.
class MessageReceiver {
 public:
  MessageReceiver(const MessageServices& services, const HandlerTable& handlers, MessageRing& ring);
  // For records that come through the network.
  MessageReceiver(const MessageServices& services, const HandlerTable& handlers, StreamHead& head)
      : services_(services),
        instrumentation_(services.instrumentation),
        handlers_(handlers),
        head_(head),
        source_(head.sender),
        reader_(nullptr, kRingCapacity),
        memory_(nullptr) {}

  // Takes the next record of the sender.
  void accept(os::RingRecord record) {
    if (record.kind == kFirst) {
      begin(record);
    } else {
      go_on(record);
    }
  }
  // Payload bytes of the current message that have not come yet; 0 between messages.
  size_t bytes_left() const { return payload_bytes_ - stored_; }

  mob_rank_t source() const { return source_; }
  // Whether the source is gone, and everything it sent was handled. By the thread that may call
  // drain().
  bool is_done();
  // Then: makes the ring, which is this receiver's, ready for another sender.
  void vacate(MessageRing& ring);

  // Of the source; null if the source is on another host.
  ProcessBlock::Doorbell* doorbell() const { return doorbell_; }

  // Whether drain() may find something, as far as a thread can tell without the right to call it.
  // Any thread. False is as certain as a look into the ring itself: a record that this call misses
  // was written later, or the draining thread is about to handle it.
  bool may_find() const {
    // Acquire pairs with the release in publish(): the larger ring is visible.
    const uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & kInside) != 0) return true;
    return (state & kWide) == 0 ? os::ring_holds(memory_, kRingCapacity, state)
                                : os::ring_holds(wide_memory_.load(std::memory_order_relaxed),
                                                 wide_capacity_, state - kWide);
  }

  // Handles the records that are there, up to a limit that gives other rings a chance. `*more`
  // becomes true if the limit was reached. Returns whether there were any. If so, the caller rings
  // the source after a full fence, because the source may wait for completion. In receive_inline.h.
  bool drain(bool* more);

 private:
  // Bits of state_. kInside: drain() runs, or has to run, so another thread cannot tell. kWide: the
  // ring is the larger one.
  static constexpr uint64_t kInside = 1;
  static constexpr uint64_t kWide = 2;

  template <typename Call>
  auto without_loss(Call call);
  bool handle_bare(os::RingRecord record);
  bool handle();
  bool settle_or_end();
  void publish();
  void end_starvation();
  void run(unsigned id, const mob_message_t& message);
  void run_traced(const Handler& handler, const mob_message_t& message);
  void run_renamed(const Handler& handler, unsigned id, const mob_message_t& message);
  void note_missing(unsigned id);
  void begin(os::RingRecord record);
  void go_on(os::RingRecord record);
  bool move(os::RingRecord record);
  void meet_new_sender();
  void take_in_place(uintptr_t address);
  bool settle();
  void answer(bool taken);
  void store(const unsigned char* part, size_t bytes);
  void finish();
  // False if the counter belongs to this host and does not exist.
  bool count(mob_rank_t owner, mob_counter_t counter);

  const MessageServices& services_;
  const Instrumentation& instrumentation_;
  const HandlerTable& handlers_;
  StreamHead& head_;
  mob_rank_t source_;
  mob_token_t token_ = token_of(source_);
  mob_token_t given_token_ = token_;  // to the handlers of the current message
  // The program of this process knows the source by another number than this engine.
  bool is_renamed_ = services_.peers.public_number(source_) != source_;
  ProcessBlock::Doorbell* doorbell_ = nullptr;
  os::RingReader reader_;
  os::RingReader first_reader_ = reader_;  // while the stream is in the larger ring
  bool is_vacant_ = false;
  uint64_t messages_ = 0;  // begun

  // For may_find(): the position in the ring, a multiple of a line, and the bits above.
  std::atomic<uint64_t> state_ = 0;
  const void* const memory_;
  std::atomic<const void*> wide_memory_ = nullptr;
  size_t wide_capacity_ = 0;
  uint64_t wide_ = 0;  // kWide once the stream goes on in the larger ring, always the same one

  // The message in progress.
  mob_delivery_t delivery_ = {};
  WireNotify notify_ = {};
  size_t payload_bytes_ = 0;
  size_t stored_ = 0;
  PayloadCopy copy_;
  bool settling_ = false;  // the sender still copies a part of it
};

}  // namespace mobius::engine
