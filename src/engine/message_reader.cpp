// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message_reader.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/log.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/lack_of_memory.h"
#include "engine/message.h"
#include "engine/remote.h"
#include "os/futex.h"
#include "transport/shm/copy.h"

namespace mobius::engine {

constinit thread_local bool in_handler = false;

namespace {

constexpr int kRecordsPerTurn = 64;

// How often the receiver of a payload looks whether the sender is done with its last part, before
// it goes on with something else.
constexpr int kSettlingLooks = 2000;

// Whether what was posted to its source may be read later still: an answer tells nothing about it,
// and Served looks itself at what it is asked for.
bool leaves_late(unsigned id) {
  return id == static_cast<unsigned>(InternalHandler::kServe) ||
         id == static_cast<unsigned>(InternalHandler::kServed);
}

class HandlerScope {
 public:
  HandlerScope() { in_handler = true; }
  ~HandlerScope() { in_handler = false; }
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;

 private:
  const base::ErrorsOfOthers errors_;
};

}  // namespace

MessageReader::MessageReader(Engine& engine, const HandlerTable& handlers, MessageRing& ring)
    : engine_(engine),
      handlers_(handlers),
      head_(ring),
      source_(ring.sender),
      doorbell_(&engine.doorbell(ring.sender)),
      reader_(ring.memory, kRingCapacity),
      memory_(ring.memory) {}

// A host-mate cannot be told that what it has sent was lost: it would wait for ever, or go on with
// wrong data.
template <typename Call>
[[gnu::always_inline]] inline auto MessageReader::without_loss(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    end_for_lack_of_memory(engine_.rank(), "to handle a message of rank", source_);
  }
}

[[gnu::always_inline]] inline void MessageReader::handle(const os::RingRecord& record) {
  without_loss([&] {
    if (record.kind == kFirst) [[likely]] {
      WireMessage wire;
      std::memcpy(&wire, record.data, sizeof wire);
      if (is_bare(wire)) [[likely]] {
        return begin_bare(record, wire);
      }
    }
    accept(record);
  });
}

inline bool MessageReader::settle_or_end() {
  return without_loss([&] { return settle(); });
}

bool MessageReader::drain(bool* more) {
  if (settling_) {
    if (!settle_or_end()) return false;
    publish();
    return true;
  }
  int records = 0;
  for (; records < kRecordsPerTurn && !settling_; ++records) {
    const os::RingRecord record = reader_.peek();
    if (!record) break;
    // Before anything is released: who still sees the old position finds its record, or one that
    // was written later in its place, whose sender looks for sleepers afterwards.
    if (records == 0) state_.store(kInside, std::memory_order_relaxed);
    if (record.kind == kMoved) [[unlikely]] {
      if (!move(record)) break;
      continue;
    }
    handle(record);
    // Nothing can follow a message that is being settled.
    if (!reader_.release()) continue;
    // Pairs with the fence in Outbox::reserve(): the sender sees the room, or we that it starves.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (head_.starved.load(std::memory_order_relaxed) != 0) {
      head_.starved.store(0, std::memory_order_relaxed);
      Progress::wake_after_fence(engine_.process(engine_.host_index(source_)).doorbell);
    }
  }
  if (records == 0) return false;
  *more |= records == kRecordsPerTurn;
  if (!settling_) publish();
  return true;
}

void MessageReader::publish() {
  const bool wide = wide_memory_.load(std::memory_order_relaxed) != nullptr;
  // Release pairs with the acquire in may_find().
  state_.store(reader_.position() | (wide ? kWide : 0), std::memory_order_release);
}

// Runs the header handler.
[[gnu::always_inline]] inline void MessageReader::call(const WireMessage& wire,
                                                       const mob_message_t& message) {
  ++messages_;
  payload_bytes_ = wire.payload_bytes;
  stored_ = 0;
  delivery_ = {};
  if (engine_.messages().has_queued()) [[unlikely]] {
    if (!leaves_late(wire.id)) engine_.messages().read_late(source_);
  }
  if (const Handler* handler = handlers_.find(wire.id)) [[likely]] {
    const HandlerScope scope;
    // A TraceScope without one does nothing, but is kept across the call.
    if (Timeline* timeline = engine_.transfers().timeline()) [[unlikely]] {
      const TraceScope trace(timeline, "header handler");
      handler->function(&message, handler->argument, &delivery_);
    } else {
      handler->function(&message, handler->argument, &delivery_);
    }
  } else {
    // A host-mate finds that out when it sends. Others are told with the report of this message.
    base::log(base::LogLevel::kWarn, "a message of rank %d names handler %u, which is not there",
              source_, static_cast<unsigned>(wire.id));
    head_.note_unknown(wire.id);
  }
}

[[gnu::always_inline]] inline void MessageReader::begin_bare(const os::RingRecord& record,
                                                             const WireMessage& wire) {
  const unsigned char* const header = record.data + sizeof wire;
  call(wire, {source_, header, wire.header_bytes, 0, header + padded(wire.header_bytes),
              token_of(source_)});
  if (delivery_.handler == nullptr && delivery_.counter == nullptr) [[likely]] {
    // As in finish().
    head_.completed.store(messages_, std::memory_order_release);
  } else {
    notify_ = {};
    finish();
  }
}

void MessageReader::begin(const os::RingRecord& record) {
  WireMessage wire;
  std::memcpy(&wire, record.data, sizeof wire);
  if (is_bare(wire)) return begin_bare(record, wire);
  const unsigned char* next = record.data + sizeof wire;
  notify_ = {};
  if ((wire.flags & kHasNotify) != 0) {
    std::memcpy(&notify_, next, sizeof notify_);
    next += sizeof notify_;
  }
  const unsigned char* header = next;
  const unsigned char* payload = header + padded(wire.header_bytes);
  const bool in_place = (wire.flags & kInPlace) != 0;
  const size_t part =
      in_place || wire.payload_bytes == 0 ? 0 : record.bytes - (payload - record.data);

  call(wire, {source_, header, wire.header_bytes, wire.payload_bytes,
              part == wire.payload_bytes ? payload : nullptr, token_of(source_)});
  if (in_place) {
    uintptr_t address = 0;
    std::memcpy(&address, payload, sizeof address);
    take_in_place(address);
  } else {
    store(payload, part);
  }
}

void MessageReader::go_on(const os::RingRecord& record) { store(record.data, record.bytes); }

void MessageReader::store(const unsigned char* part, size_t bytes) {
  if (delivery_.payload != nullptr && bytes != 0) {
    transport::copy(static_cast<unsigned char*>(delivery_.payload) + stored_, part, bytes);
  }
  stored_ += bytes;
  if (stored_ == payload_bytes_) finish();
}

// To the wider ring in which the stream goes on; false if it cannot be mapped now, and the record
// stays.
bool MessageReader::move(const os::RingRecord& record) {
  WireMoved ring;
  std::memcpy(&ring, record.data, sizeof ring);
  void* memory = engine_.messages().wider_ring_at(ring.offset);
  if (memory == nullptr) return false;
  reader_ = os::RingReader(memory, ring.capacity);
  wide_capacity_ = ring.capacity;
  wide_memory_.store(memory, std::memory_order_relaxed);
  return true;
}

// From the sender, which may not free or change the memory before we have answered.
void MessageReader::take_in_place(uintptr_t address) {
  if (delivery_.payload == nullptr) return answer(true);
  if (!copy_.start(engine_, source_, head_.copy, messages_, address, delivery_.payload,
                   payload_bytes_)) {
    return answer(false);
  }
  for (int looks = 0; !settle() && looks < kSettlingLooks; ++looks) os::relax();
}

bool MessageReader::settle() {
  settling_ = !copy_.is_settled();
  if (!settling_) answer(copy_.finish(engine_, source_));
  return !settling_;
}

void MessageReader::answer(bool taken) {
  // Release pairs with the acquire in Outbox::is_answered(): we are done reading.
  (taken ? head_.taken : head_.refused).store(messages_, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Pairs with the fence in Outbox::await_answer().
  if (head_.starved.load(std::memory_order_relaxed) != 0) {
    head_.starved.store(0, std::memory_order_relaxed);
    Progress::wake_after_fence(engine_.process(engine_.host_index(source_)).doorbell);
  } else {
    engine_.ring_after_fence(source_);
  }
  if (taken) finish();
}

void MessageReader::finish() {
  if (delivery_.handler != nullptr) {
    const HandlerScope scope;
    const TraceScope trace(engine_.transfers().timeline(), "completion handler");
    delivery_.handler(token_of(source_), delivery_.argument);
  }
  if (delivery_.counter != nullptr) count(engine_.rank(), delivery_.counter);
  if (notify_.target_counter != nullptr && !count(engine_.rank(), notify_.target_counter) &&
      !engine_.is_here(source_)) {
    head_.note_unknown(StreamHead::kUnknownCounter);  // host-mates looked when they sent
  }
  // Release pairs with the acquire in Outbox::flush(): what the handlers wrote comes before.
  head_.completed.store(messages_, std::memory_order_release);
  if (notify_.completion_counter != nullptr) count(source_, notify_.completion_counter);
}

bool MessageReader::count(mob_rank_t owner, mob_counter_t counter) {
  if (!engine_.is_here(owner)) {
    // Nobody is left to tell if it is gone.
    static_cast<void>(engine_.remote().count(owner, counter));
    return true;
  }
  // Senders' counters were looked at when they sent; one that was freed since is counted nowhere.
  mob_counter* found = engine_.counters().find("a message", owner, counter);
  if (found != nullptr) engine_.counters().count(owner, *found);
  return found != nullptr;
}

}  // namespace mobius::engine
