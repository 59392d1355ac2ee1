// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message/message_receiver.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/log.h"
#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/message/message.h"
#include "engine/message/receive_inline.h"
#include "engine/progress/counters.h"
#include "engine/progress/progress.h"
#include "os/sync/futex.h"
#include "transport/shm/copy.h"

namespace mobius::engine {

namespace {

// How often the receiver of a payload checks whether the sender has finished its last part, before
// it goes on with something else.
constexpr int kSettlingLooks = 2000;

// Whether LatePayloads for the source of this message may stay unread while its handler runs. An
// answer does not touch them, and for requests AmRma itself decides when to read them.
bool leaves_late(unsigned id) {
  return id == static_cast<unsigned>(InternalHandler::kServe) ||
         id == static_cast<unsigned>(InternalHandler::kServed);
}

}  // namespace

MessageReceiver::MessageReceiver(const MessageServices& services, const HandlerTable& handlers,
                                 MessageRing& ring)
    : services_(services),
      instrumentation_(services.instrumentation),
      handlers_(handlers),
      head_(ring),
      source_(ring.sender),
      doorbell_(&services.segment.doorbell(ring.sender)),
      reader_(ring.memory, kRingCapacity),
      memory_(ring.memory) {}

bool MessageReceiver::settle_or_end() {
  return without_loss([&] { return settle(); });
}

// Handles the record peeked last, which is not a bare message; false if it stays in the ring for
// now.
bool MessageReceiver::handle() {
  const os::RingRecord record = reader_.peek();
  if (record.kind == kMoved) return move(record);
  if (record.kind == kNewSender) {
    meet_new_sender();
    return true;
  }
  without_loss([&] { accept(record); });
  return true;
}

// Called after room was made and the sender waits for it.
void MessageReceiver::end_starvation() {
  // Pairs with the fence in MessageSender::reserve(): the sender sees the room, or this thread sees
  // that the sender starves.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (head_.starved.load(std::memory_order_relaxed) == 0) return;
  head_.starved.store(0, std::memory_order_relaxed);
  Progress::wake_after_fence(services_.segment.doorbell(source_));
}

void MessageReceiver::run_traced(const Handler& handler, const mob_message_t& message) {
  const TraceScope trace(instrumentation_.timeline(), "header handler");
  handler.function(&message, handler.argument, &delivery_);
}

// Of a guest of another job. The program's handlers get the number that the program knows.
void MessageReceiver::run_renamed(const Handler& handler, unsigned id,
                                  const mob_message_t& message) {
  mob_message_t told = message;
  given_token_ = token_;
  if (id < MOB_MAX_HANDLERS) {
    told.source = services_.peers.public_number(source_);
    given_token_ = token_of(told.source);
    told.token = given_token_;
  }
  run_traced(handler, told);
}

void MessageReceiver::note_missing(unsigned id) {
  // A local peer learns of this when it sends. Other peers learn of it from the report on this
  // message.
  base::log(base::LogLevel::kWarn,
            "a message of rank %d names handler %u, which is not registered here", source_, id);
  head_.note_unknown(id);
}

void MessageReceiver::begin(os::RingRecord record) {
  WireMessage wire;
  std::memcpy(&wire, record.data, sizeof wire);
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

  ++messages_;
  payload_bytes_ = wire.payload_bytes;
  stored_ = 0;
  delivery_ = {};
  if (doorbell_ == nullptr && services_.messages.has_queued() && !leaves_late(wire.id)) {
    services_.messages.read_late(source_);
  }
  run(wire.id, {source_, header, wire.header_bytes, wire.payload_bytes,
                part == wire.payload_bytes ? payload : nullptr, token_});
  if (in_place) {
    uintptr_t address = 0;
    std::memcpy(&address, payload, sizeof address);
    take_in_place(address);
  } else {
    store(payload, part);
  }
}

void MessageReceiver::go_on(os::RingRecord record) { store(record.data, record.bytes); }

void MessageReceiver::store(const unsigned char* part, size_t bytes) {
  if (delivery_.payload != nullptr && bytes != 0) {
    transport::copy(static_cast<unsigned char*>(delivery_.payload) + stored_, part, bytes);
  }
  stored_ += bytes;
  if (stored_ == payload_bytes_) finish();
}

// Goes on in the larger ring that the record names. False if this process cannot map it now; the
// record stays then.
bool MessageReceiver::move(os::RingRecord record) {
  WireMoved ring;
  std::memcpy(&ring, record.data, sizeof ring);
  void* memory = services_.messages.larger_ring_at(ring.offset);
  if (memory == nullptr) return false;
  reader_.release();
  first_reader_ = reader_;
  reader_ = os::RingReader(memory, ring.capacity);
  wide_capacity_ = ring.capacity;
  wide_ = kWide;
  wide_memory_.store(memory, std::memory_order_relaxed);
  return true;
}

bool MessageReceiver::is_done() {
  const mob_rank_t index = services_.peers.host_index(source_);
  const job::Liveness& liveness = services_.peers.liveness();
  return !is_vacant_ && !settling_ && (liveness.has_left(index) || liveness.is_known_dead(index)) &&
         !reader_.peek();
}

void MessageReceiver::vacate(MessageRing& ring) {
  is_vacant_ = true;
  reader_.publish();
  if (wide_ != 0) {
    reader_ = first_reader_;
    reader_.publish();
    wide_ = 0;
  }
  publish();
  ring.starved.store(0, std::memory_order_relaxed);
  for (auto* const number :
       {&ring.taken, &ring.refused, &ring.completed, &ring.unknown, &ring.copy.number}) {
    number->store(0, std::memory_order_relaxed);
  }
  messages_ = 0;
  payload_bytes_ = stored_ = 0;  // a sender that died may have left a part of a message
}

void MessageReceiver::meet_new_sender() {
  is_vacant_ = false;
  source_ = head_.sender;
  token_ = given_token_ = token_of(source_);
  is_renamed_ = services_.peers.public_number(source_) != source_;
  doorbell_ = &services_.segment.doorbell(source_);
  services_.messages.look_for_vacant_rings();
}

// Takes the payload from the sender, which must not free or change it before the answer.
void MessageReceiver::take_in_place(uintptr_t address) {
  if (delivery_.payload == nullptr) return answer(true);
  if (!copy_.start(services_, source_, head_.copy, messages_, address, delivery_.payload,
                   payload_bytes_)) {
    return answer(false);
  }
  for (int looks = 0; !settle() && looks < kSettlingLooks; ++looks) os::relax();
}

bool MessageReceiver::settle() {
  settling_ = !copy_.is_settled();
  if (!settling_) answer(copy_.finish(services_, source_));
  return !settling_;
}

void MessageReceiver::answer(bool taken) {
  // Release pairs with the acquire in MessageSender::is_answered(): all reads are done.
  (taken ? head_.taken : head_.refused).store(messages_, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Pairs with the fence in MessageSender::await_answer().
  if (head_.starved.load(std::memory_order_relaxed) != 0) {
    head_.starved.store(0, std::memory_order_relaxed);
    Progress::wake_after_fence(services_.segment.doorbell(source_));
  } else {
    services_.waiter.ring_after_fence(source_);
  }
  if (taken) finish();
}

void MessageReceiver::finish() {
  if (delivery_.handler != nullptr) {
    const HandlerScope scope;
    const TraceScope trace(instrumentation_.timeline(), "completion handler");
    delivery_.handler(given_token_, delivery_.argument);
  }
  if (delivery_.counter != nullptr) services_.counters.count_named(delivery_.counter);
  if (notify_.target_counter != nullptr && !count(services_.peers.rank(), notify_.target_counter) &&
      (!services_.peers.is_here(source_) || services_.peers.is_guest())) {
    head_.note_unknown(StreamHead::kUnknownCounter);  // others have checked it when they sent
  }
  // Release pairs with the acquire in MessageSender::flush(): the handlers' writes come before it.
  head_.completed.store(messages_, std::memory_order_release);
  if (notify_.completion_counter != nullptr) count(source_, notify_.completion_counter);
}

bool MessageReceiver::count(mob_rank_t owner, mob_counter_t counter) {
  if (!services_.peers.is_here(owner) || services_.counters.is_elsewhere(owner, counter)) {
    services_.messages.count_elsewhere(owner, counter);
    return true;
  }
  // Local peers have checked their counters when they sent. A counter freed since then is not
  // counted.
  mob_counter* found = services_.counters.find("a message", owner, counter);
  if (found != nullptr) services_.counters.count(owner, *found);
  return found != nullptr;
}

}  // namespace mobius::engine
