// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fast path of a message at its target, from the ring to the handler in one piece of code;
// send_inline.h is its counterpart.

#include <mobius/message.h>

#include <atomic>
#include <cstring>
#include <new>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/common/out_of_memory.h"
#include "engine/message/message.h"
#include "engine/message/message_receiver.h"
#include "engine/progress/waiter.h"
#include "engine/segment/message_wire.h"
#include "os/sync/ring.h"

namespace mobius::engine {

inline constexpr int kRecordsPerTurn = 64;

class HandlerScope {
 public:
  HandlerScope() { in_handler = true; }
  ~HandlerScope() { in_handler = false; }
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;
};

// A local peer cannot be told that its message was lost: it would wait for ever, or go on with
// wrong data. So this process ends instead.
template <typename Call>
[[gnu::always_inline]] inline auto MessageReceiver::without_loss(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    end_for_lack_of_memory(services_.peers.rank(), "to handle a message of rank", source_);
  }
}

// Runs the header handler.
[[gnu::always_inline]] inline void MessageReceiver::run(unsigned id, const mob_message_t& message) {
  const Handler* const handler = handlers_.find(id);
  if (handler == nullptr) [[unlikely]] {
    return note_missing(id);
  }
  const HandlerScope scope;
  if (is_renamed_) [[unlikely]] {
    return run_renamed(*handler, id, message);
  }
  // A TraceScope without a timeline does nothing, but the compiler would keep it across the call.
  if (instrumentation_.timeline() != nullptr) [[unlikely]] {
    run_traced(*handler, message);
  } else {
    handler->function(&message, handler->argument, &delivery_);
  }
}

// Handles a record of a local peer if it is a whole message without payload and counters, as most
// are.
[[gnu::always_inline]] inline bool MessageReceiver::handle_bare(os::RingRecord record) {
  WireMessage wire;
  std::memcpy(&wire, record.data, sizeof wire);
  if (record.kind != kFirst || wire.flags != 0 || wire.payload_bytes != 0) [[unlikely]] {
    return false;
  }
  const unsigned char* const header = record.data + sizeof wire;
  ++messages_;
  delivery_ = {};
  without_loss([&] {
    run(wire.id,
        {source_, header, wire.header_bytes, 0, header + padded(wire.header_bytes), token_});
    if (delivery_.handler == nullptr && delivery_.counter == nullptr) [[likely]] {
      // As in finish().
      head_.completed.store(messages_, std::memory_order_release);
    } else {
      notify_ = {};
      finish();
    }
  });
  return true;
}

[[gnu::always_inline]] inline bool MessageReceiver::drain(bool* more) {
  if (settling_) [[unlikely]] {
    if (!settle_or_end()) return false;
    publish();
    return true;
  }
  int records = 0;
  while (true) {
    const os::RingRecord record = reader_.peek();
    if (!record) break;
    // Set this before releasing anything. A thread that still sees the old position finds its
    // record, or a later record in its place, whose sender checks for sleepers afterwards.
    state_.store(kInside, std::memory_order_relaxed);
    if (!handle_bare(record) && !handle()) break;
    if (reader_.release()) [[unlikely]] {
      end_starvation();
    }
    if (++records == kRecordsPerTurn) *more = true;
    if (settling_) [[unlikely]] {
      return true;  // no other message can follow
    }
    if (records == kRecordsPerTurn) break;
  }
  if (records == 0) return false;
  publish();
  return true;
}

inline void MessageReceiver::publish() {
  // Release pairs with the acquire in may_find().
  state_.store(reader_.position() | wide_, std::memory_order_release);
}

}  // namespace mobius::engine
