// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The receiving side of a stream of records: runs handlers, moves payloads.

#include <mobius/message.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/host_memory.h"
#include "engine/message_payload.h"
#include "engine/message_wire.h"
#include "os/ring.h"

namespace mobius::engine {

class Engine;
class HandlerTable;

// True on a thread that is running a handler.
extern constinit thread_local bool in_handler [[gnu::tls_model("initial-exec")]];

// Used by one thread at a time.
class MessageReader {
 public:
  MessageReader(Engine& engine, const HandlerTable& handlers, MessageRing& ring);
  // Of what comes through the network, record by record.
  MessageReader(Engine& engine, const HandlerTable& handlers, StreamHead& head)
      : engine_(engine),
        handlers_(handlers),
        head_(head),
        source_(head.sender),
        reader_(nullptr, kRingCapacity),
        memory_(nullptr) {}

  // A record of a message; the next one of its sender.
  void accept(const os::RingRecord& record) {
    if (record.kind == kFirst) {
      begin(record);
    } else {
      go_on(record);
    }
  }
  // Whether a message is under way, so that kMore is what may come.
  bool is_within() const { return stored_ != payload_bytes_; }
  size_t bytes_left() const { return payload_bytes_ - stored_; }

  mob_rank_t source() const { return source_; }
  // Of the source; null if that is on another host.
  ProcessBlock::Doorbell* doorbell() const { return doorbell_; }

  // Whether drain() may find something, as far as that can be told without the right to call it.
  // Any thread. False is as certain as if the caller had looked into the ring itself: a record that
  // this misses was written later, or is about to be handled by who drains.
  bool may_find() const {
    // Acquire pairs with the release in publish(): the wider ring is known.
    const uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & kInside) != 0) return true;
    return (state & kWide) == 0 ? os::ring_holds(memory_, kRingCapacity, state)
                                : os::ring_holds(wide_memory_.load(std::memory_order_relaxed),
                                                 wide_capacity_, state - kWide);
  }

  // Handles what is there, up to a limit that gives other rings a chance. `*more` becomes true if
  // it was reached. Whether there was anything: then the caller rings the source after a full
  // fence, as it may wait for completion.
  bool drain(bool* more);

 private:
  // Bits of state_: it cannot be told from outside, as drain() is at it, or has to be; the ring is
  // the wider one.
  static constexpr uint64_t kInside = 1;
  static constexpr uint64_t kWide = 2;

  template <typename Call>
  auto without_loss(Call call);
  void handle(const os::RingRecord& record);
  bool settle_or_end();
  void publish();
  void call(const WireMessage& wire, const mob_message_t& message);
  // What most messages are: without payload and counters.
  static bool is_bare(const WireMessage& wire) {
    return wire.flags == 0 && wire.payload_bytes == 0;
  }
  void begin_bare(const os::RingRecord& record, const WireMessage& wire);
  void begin(const os::RingRecord& record);
  void go_on(const os::RingRecord& record);
  bool move(const os::RingRecord& record);
  void take_in_place(uintptr_t address);
  bool settle();
  void answer(bool taken);
  void store(const unsigned char* part, size_t bytes);
  void finish();
  // False if it is a counter of this host that is not there.
  bool count(mob_rank_t owner, mob_counter_t counter);

  Engine& engine_;
  const HandlerTable& handlers_;
  StreamHead& head_;
  const mob_rank_t source_;
  ProcessBlock::Doorbell* const doorbell_ = nullptr;
  os::RingReader reader_;
  uint64_t messages_ = 0;  // begun

  // For may_find(): the position in the ring, a multiple of a line, and bits.
  std::atomic<uint64_t> state_ = 0;
  const void* const memory_;
  std::atomic<const void*> wide_memory_ = nullptr;
  size_t wide_capacity_ = 0;

  // The message under way.
  mob_delivery_t delivery_ = {};
  WireNotify notify_ = {};
  size_t payload_bytes_ = 0;
  size_t stored_ = 0;
  PayloadCopy copy_;
  bool settling_ = false;  // the sender still copies a part of it
};

}  // namespace mobius::engine
