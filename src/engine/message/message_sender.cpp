// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message/message_sender.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/message/message_payload.h"
#include "engine/message/send_inline.h"
#include "engine/network/link.h"
#include "engine/progress/completion.h"
#include "engine/progress/progress.h"
#include "engine/segment/kernel_copy.h"
#include "transport/cma/cma.h"
#include "transport/shm/copy_peer.h"

namespace mobius::engine {
namespace {

using base::fail;

// Payload of a record that continues a message once much has flowed. Each record begins with a line
// that the target must wait for before it prefetches others. With much longer records it would wait
// for the sender instead.
constexpr size_t kWideMoreBytes = (size_t{16} << 10) - os::kRingPayloadAlignment;
// Such a record also fits into the first ring, in case there is no memory for a larger one.
static_assert(kWideMoreBytes <= os::ring_max_payload(kRingCapacity));

}  // namespace

// Ends waits for a target that cannot answer any more.
class MessageSender::TargetWatch final : public os::Watch {
 public:
  explicit TargetWatch(const MessageSender& sender) : sender_(sender) {}

  mob_status_t look() override {
    return sender_.services_.peers.has_gone(sender_.target_) ? sender_.broken() : MOB_OK;
  }

 private:
  const MessageSender& sender_;
};

MessageSender::MessageSender(const MessageServices& services, mob_rank_t target, MessageRing& ring,
                             uint32_t index, std::atomic<uint32_t>& senders_with_queue)
    : services_(services),
      target_(target),
      target_block_(&services.segment.process(services.peers.host_index(target))),
      head_(ring),
      index_(index),
      senders_with_queue_(senders_with_queue),
      writer_(ring.memory, kRingCapacity),
      widens_after_(services.messages.widens_after()) {}

MessageSender::MessageSender(const MessageServices& services, mob_rank_t target, Link& link,
                             std::atomic<uint32_t>& senders_with_queue)
    : services_(services),
      target_(target),
      target_block_(nullptr),
      head_(link.outgoing_head()),
      link_(&link),
      senders_with_queue_(senders_with_queue),
      writer_(nullptr, kRingCapacity) {}

MessageSender::Turn::Turn(MessageSender& sender) : sender_(sender), id_(thread_id()) {}

void MessageSender::Turn::take() {
  os::lock(sender_.turn_, id_, sender_.services_.peers.host().policy());
  has_ = true;
}

bool MessageSender::Turn::try_take() { return has_ = os::try_lock(sender_.turn_, id_); }

void MessageSender::Turn::give_up() {
  os::unlock(sender_.turn_, id_);
  has_ = false;
}

mob_status_t MessageSender::broken() const {
  const bool left = services_.peers.has_left(target_);
  return fail(MOB_ERR_PEER, "a message to rank %d cannot be delivered: it %s", target_,
              left ? "has left the job (mob_finalize)" : services_.peers.fate(target_).c_str());
}

// Returns the address of the next record, or null if there is no room. The target then wakes this
// process when it makes room.
void* MessageSender::reserve(size_t bytes, RecordKind kind) {
  if (link_ != nullptr) return link_->reserve(bytes, kind);
  if (void* record = writer_.reserve(bytes, kind)) [[likely]] {
    return record;
  }
  head_.starved.store(1, std::memory_order_relaxed);
  // Pairs with the fence in MessageReceiver::end_starvation(): the target sees that this process
  // starves, or this thread sees the room.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  void* record = writer_.reserve(bytes, kind);
  if (record == nullptr) {
    untold_ = false;
    tell_target_after_fence();  // of the records that it was not told of so far
  }
  return record;
}

// Makes the record visible to the target. `tell`: wake the target, if it would not look by itself,
// before this thread waits or gives up its turn. A wake-up for each record that others follow at
// once would cost more than the records.
void MessageSender::commit(bool tell) {
  if (link_ != nullptr) return link_->commit();
  writer_.commit();
  untold_ |= tell;
}

void MessageSender::tell_target() {
  untold_ = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  tell_target_after_fence();
}

void MessageSender::announce() {
  static_cast<void>(writer_.reserve(0, kNewSender));  // the ring is empty
  writer_.commit();
}

// Changes to a larger ring, if there is memory for one and room for the record that says so.
void MessageSender::widen() {
  WireMoved& ring = static_cast<MessageRing&>(head_).larger;
  void* record = writer_.reserve(sizeof ring, kMoved);
  if (record == nullptr) return;
  widens_after_ = kNever;
  if (ring.capacity == 0 && !services_.messages.add_larger_ring(target_, &ring)) return;
  void* memory = services_.messages.larger_ring_at(ring.offset);
  if (memory == nullptr) return;
  std::memcpy(record, &ring, sizeof ring);
  commit(true);
  writer_ = os::RingWriter(memory, ring.capacity);
}

// Most bytes of the next record.
size_t MessageSender::most_bytes() const {
  if (link_ != nullptr) return link_->record_bytes();
  return widens_after_ == kNever ? kWideMoreBytes : kMoreBytes;
}

bool MessageSender::write_first(const Outgoing& message, Cursor& cursor, bool in_place) {
  const bool notify = has_notify(message);
  size_t bytes = head_bytes(message, notify);
  size_t part = 0;
  if (in_place) {
    bytes = padded(bytes) + sizeof message.payload;
  } else if (message.payload_bytes != 0) {
    bytes = padded(bytes);
    part = std::min(message.payload_bytes, most_bytes() - bytes);
    bytes += part;
  }
  // So large a part that no frame holds two of them.
  const bool is_sent_in_place = link_ != nullptr && message.stays && part > most_bytes() / 2;
  alignas(os::kRingPayloadAlignment) unsigned char head[kMostBesidePayload];
  auto* record = is_sent_in_place ? head : static_cast<unsigned char*>(reserve(bytes, kFirst));
  if (record == nullptr) return false;
  unsigned char* payload = put_head(record, message, notify, in_place);
  if (is_sent_in_place) {
    if (!link_->send_in_place(kFirst, {head, bytes - part}, message.payload, part)) return false;
  } else if (in_place) {
    std::memcpy(payload, &message.payload, sizeof message.payload);
    part = message.payload_bytes;
  } else if (part != 0) {
    transport::copy_part_to_peer(payload, message.payload, part);
  }
  if (!is_sent_in_place) commit(part == message.payload_bytes);
  if (!in_place) streamed_bytes_ += part;
  cursor = {true, in_place, part};
  return true;
}

// Whether the target is asked to take the payload from where it is. `waits`: the sender waits and
// can help.
bool MessageSender::is_taken_in_place(const Outgoing& message, bool waits) {
  if (link_ != nullptr || message.payload_bytes < kInPlaceFromBytes) return false;
  if (services_.peers.is_same_process(target_) ||
      services_.segment.reach(services_.peers.rank(), message.payload, message.payload_bytes) !=
          nullptr) {
    return true;
  }
  if (message.payload_bytes < kSharedFromBytes || !attaches_.load(std::memory_order_relaxed) ||
      !services_.kernel_copy.allowed(target_) ||
      message.payload_bytes < (waits ? attach_from_bytes() : kAttachFromBytes)) {
    return false;
  }
  std::call_once(attach_allowed_, transport::allow_attach);
  return true;
}

// Whether the target has taken the payload, or refused to.
bool MessageSender::is_answered(Cursor& cursor, size_t payload_bytes) {
  // No message was begun since: the answer is for the message after those written.
  const uint64_t number = written_.load(std::memory_order_relaxed) + 1;
  // Acquire, here and below, pairs with the release in MessageReceiver::answer(): all reads are
  // done.
  if (head_.taken.load(std::memory_order_acquire) == number) {
    cursor.sent = payload_bytes;
  } else if (head_.refused.load(std::memory_order_acquire) == number) {
    attaches_.store(false, std::memory_order_relaxed);
    cursor.sent = 0;
  } else {
    return false;
  }
  cursor.asked = false;
  return true;
}

// Copies a part of a payload that the target was asked to take; false if there is none to copy.
bool MessageSender::help(const Outgoing& message) {
  const uint64_t number = written_.load(std::memory_order_relaxed) + 1;
  if (!help_to_copy(services_, target_, head_.copy, number, message.payload,
                    message.payload_bytes)) {
    return false;
  }
  tell_target();
  return true;
}

bool MessageSender::write_more(const unsigned char* part, size_t bytes, bool last, bool stays) {
  if (link_ != nullptr) {
    return stays ? link_->send_in_place(kMore, {}, part, bytes) : link_->send_more(part, bytes);
  }
  void* record = reserve(bytes, kMore);
  if (record == nullptr) return false;
  transport::copy_part_to_peer(record, part, bytes);
  commit(last);
  streamed_bytes_ += bytes;
  return true;
}

// Writes as much of the message as there is room for; returns whether that was all. If so, the
// caller still has to tell the target; if not, the target was told. Needs the turn.
bool MessageSender::write(const Outgoing& message, Cursor& cursor, bool in_place) {
  if (write_on(message, cursor, in_place)) [[likely]] {
    return true;
  }
  if (untold_) tell_target();
  return false;
}

bool MessageSender::write_on(const Outgoing& message, Cursor& cursor, bool in_place) {
  if (widens()) [[unlikely]] {
    widen();
  }
  if (!cursor.started && !write_first(message, cursor, in_place)) return false;
  while (cursor.asked && !is_answered(cursor, message.payload_bytes)) {
    if (!help(message)) return false;
  }
  while (cursor.sent < message.payload_bytes) {
    const size_t part = std::min(message.payload_bytes - cursor.sent, most_bytes());
    const auto* from = static_cast<const unsigned char*>(message.payload) + cursor.sent;
    const bool last = cursor.sent + part == message.payload_bytes;
    if (!write_more(from, part, last, message.stays)) return false;
    cursor.sent += part;
  }
  note_written(message.id);
  return true;
}

mob_status_t MessageSender::send(const Outgoing& message) {
  const bool in_place = is_taken_in_place(message, true);
  TargetWatch watch(*this);
  Turn turn(*this);
  turn.take();
  if (broken_.load(std::memory_order_relaxed)) return broken();
  Cursor cursor;
  // Handlers that run meanwhile add to the queue; nothing may come between the records of a
  // message.
  const auto written = [&] {
    return (cursor.started || write_queue()) && write(message, cursor, in_place);
  };
  if (!written()) {
    if (const mob_status_t status = services_.waiter.wait_until(written, &watch)) {
      set_broken();
      return status;
    }
  }
  write_queue_and_give_up(turn);
  return MOB_OK;
}

mob_status_t MessageSender::post(const Outgoing& message) {
  if (broken_.load(std::memory_order_relaxed)) return broken();
  Turn turn(*this);
  turn.try_take();
  const bool is_next = turn.has() && write_queue();
  Parcel parcel{message, {}, nullptr};
  if (is_next && message.described_bytes != 0) read(parcel, *message.late);
  if (is_next && write(parcel.message, parcel.cursor, false)) {
    write_queue_and_give_up(turn);
    return MOB_OK;
  }
  const bool is_begun = parcel.cursor.started;
  try {
    if (parcel.bytes == nullptr) keep(parcel);
    enqueue(std::move(parcel));
  } catch (const std::bad_alloc&) {
    if (!is_begun) throw;
    // The target would take the next message for the rest of this one.
    end_for_lack_of_memory(services_.peers.rank(), "to finish a message to rank", target_);
  }
  // A thread that gives up the turn checks the queue afterwards, and so does this thread.
  if (turn.has()) {
    write_queue_and_give_up(turn);
  } else {
    pump();
  }
  return MOB_OK;
}

bool MessageSender::send_now(const Outgoing& message) {
  // A message of one record is written as a whole or not at all.
  if (message.payload_bytes > kMostSentNow || message.described_bytes != 0 ||
      broken_.load(std::memory_order_relaxed)) {
    return false;
  }
  Turn turn(*this);
  if (!turn.try_take()) return false;
  const bool is_short_way = link_ == nullptr && !has_queue() && !widens();
  if (is_short_way && write_whole(message)) [[likely]] {
    untold_ = true;
    write_queue_and_give_up(turn);
    return true;
  }
  Cursor cursor;
  const bool written = (!has_queue() || write_queue()) && write(message, cursor, false);
  write_queue_and_give_up(turn);
  return written;
}

void MessageSender::send_bare_from_now() {
  // Senders with a later ring have to say which ring they wrote to.
  if (link_ != nullptr || index_ >= kPolledRings || sends_bare_.load(std::memory_order_relaxed)) {
    return;
  }
  // Sequentially consistent, as in set_broken(): the later of the two calls clears the flag.
  sends_bare_.store(true, std::memory_order_seq_cst);
  if (broken_.load(std::memory_order_seq_cst)) sends_bare_.store(false, std::memory_order_relaxed);
}

void MessageSender::set_broken() {
  broken_.store(true, std::memory_order_seq_cst);
  sends_bare_.store(false, std::memory_order_seq_cst);
}

// Completes a bare message that is written: gives up the turn, tells the target, and serves the
// queue.
void MessageSender::finish_bare() {
  give_up_turn();
  tell_target_after_fence();
  if (has_queue()) pump();  // messages queued during this thread's turn
}

void MessageSender::give_up_turn() {
  const uint32_t self = thread_id();
  if (os::lock_owner(turn_) == self) os::unlock(turn_, self);
}

void MessageSender::look_for_room() {
  writer_.look_for_room();
  give_up_turn();
  if (has_queue()) pump();
}

void MessageSender::start(const Outgoing& message, Pending& pending) noexcept {
  if (broken_.load(std::memory_order_relaxed)) return end(pending, broken());
  try {
    Parcel parcel{message,
                  {},
                  std::make_unique_for_overwrite<unsigned char[]>(message.header_bytes),
                  &pending,
                  is_taken_in_place(message, false)};
    // Goes behind the messages queued already; pump() writes it at once if possible.
    enqueue(std::move(parcel));
  } catch (const std::bad_alloc&) {
    return end(pending, fail(MOB_ERR_MEMORY,
                             "a message to rank %d: this process has no memory left", target_));
  }
  try {
    pump();
  } catch (const std::bad_alloc&) {
    return;  // the message stays in the queue; the next poll tries again
  }
}

// Takes over the payload as it is, and copies the header into `bytes`.
void MessageSender::enqueue(Parcel parcel) {
  Outgoing& message = parcel.message;
  if (message.header_bytes != 0 && message.header != parcel.bytes.get()) {
    std::memcpy(parcel.bytes.get(), message.header, message.header_bytes);
  }
  message.header = parcel.bytes.get();
  const bool started = parcel.cursor.started;
  const bool is_late = message.late != nullptr;
  const std::lock_guard lock(queue_mutex_);
  const bool was_empty = queue_.empty();
  parcel.number = queued_.load(std::memory_order_relaxed) + 1;
  // A message that was begun goes first. This thread has the turn then.
  if (started) {
    queue_.push_front(std::move(parcel));
  } else {
    queue_.push_back(std::move(parcel));
  }
  if (is_late) ++late_;  // only once the parcel is queued: push_back() may throw
  if (was_empty) senders_with_queue_.fetch_add(1, std::memory_order_relaxed);
  // Sequentially consistent, as the load in write_queue_and_give_up(): the thread that gives up the
  // turn sees the parcel, or this thread gets the turn in pump().
  queued_.fetch_add(1, std::memory_order_seq_cst);
}

MessageSender::Parcel* MessageSender::front() {
  const std::lock_guard lock(queue_mutex_);
  return queue_.empty() ? nullptr : &queue_.front();
}

// Copies all that the caller takes back.
void MessageSender::keep(Parcel& parcel) {
  Outgoing& message = parcel.message;
  const bool is_described = message.described_bytes != 0;
  // A message that was begun has sent its length, so nothing can be sent in its place.
  if (message.late != nullptr && !is_described &&
      (link_ == nullptr || parcel.cursor.started ||
       message.header_bytes + message.payload_bytes <= message.late->header_room)) {
    message.late = nullptr;
  }
  const bool is_late = message.late != nullptr;
  const size_t room = is_late ? message.late->header_room : message.header_bytes;
  const size_t copied = is_late ? message.described_bytes : message.payload_bytes;
  parcel.bytes = std::make_unique_for_overwrite<unsigned char[]>(room + copied);
  if (copied == 0) return;
  message.stays = false;
  transport::copy(parcel.bytes.get() + room, message.payload, copied);
  message.payload = parcel.bytes.get() + room;
}

// The queue must not be empty. Reads a LatePayload as a whole, because its owner may change the
// memory or give it away while the message is written.
MessageSender::Parcel& MessageSender::front_to_write() {
  const std::lock_guard lock(queue_mutex_);
  read_late(queue_.front());
  return queue_.front();
}

// Needs queue_mutex_.
void MessageSender::read_late(Parcel& parcel) {
  Outgoing& message = parcel.message;
  if (message.late == nullptr) return;
  --late_;
  read(parcel, *message.late);
}

// Reads the LatePayload of a message into the parcel, which then holds the whole message, or the
// error in its place.
void MessageSender::read(Parcel& parcel, const LatePayload& late) {
  Outgoing& message = parcel.message;
  const base::ErrorsOfOthers errors;
  const size_t bytes = message.payload_bytes;
  const size_t room = std::max(message.header_bytes + bytes, late.header_room);
  std::unique_ptr<unsigned char[]> whole(new (std::nothrow) unsigned char[room]);
  unsigned char* const payload = whole.get() + message.header_bytes;
  const mob_status_t status = whole != nullptr
                                  ? late.read(message.late_owner, message.payload, bytes, payload)
                                  : fail(MOB_ERR_MEMORY, "it has no memory left");
  if (whole == nullptr && parcel.bytes == nullptr) {
    whole = std::make_unique_for_overwrite<unsigned char[]>(late.header_room);
  }
  if (whole != nullptr) {
    std::memcpy(whole.get(), message.header, message.header_bytes);
    parcel.bytes = std::move(whole);
  }
  if (status != MOB_OK) {
    message.header_bytes = late.refuse(parcel.bytes.get(), status);
    message.payload_bytes = 0;
  }
  message.header = parcel.bytes.get();
  message.payload = payload;
  message.late = nullptr;
  message.described_bytes = 0;
}

void MessageSender::read_late() {
  const std::lock_guard lock(queue_mutex_);
  // In their order. All LatePayloads lie behind those read before, which may be many, so search
  // from the end.
  auto next = queue_.end();
  for (size_t before = late_; before != 0;) {
    --next;
    if (next->message.late != nullptr) --before;
  }
  for (; late_ != 0; ++next) read_late(*next);
}

// Removes the first message, which was written or never will be.
void MessageSender::pop(mob_status_t status) {
  Pending* pending = nullptr;
  {
    const std::lock_guard lock(queue_mutex_);
    pending = queue_.front().pending;
    if (queue_.front().message.late != nullptr) --late_;
    queue_.pop_front();
    if (queue_.empty()) senders_with_queue_.fetch_sub(1, std::memory_order_relaxed);
    // A message that was begun has overtaken others. A flush that waits for those must not count it
    // as one of them.
    unqueued_.store(
        queue_.empty() ? queued_.load(std::memory_order_relaxed) : queue_.front().number - 1,
        std::memory_order_release);
  }
  if (pending != nullptr) end(*pending, status);
}

// The caller of a started message only waits until it is handed over; flushes check the ring for
// the rest.
void MessageSender::end(Pending& pending, mob_status_t status) {
  services_.completion.complete(pending, status);
}

void MessageSender::give_queue_up() {
  while (front() != nullptr) pop(broken());
}

// Whether the target has answered; if not, the target will wake this process.
bool MessageSender::await_answer(Parcel& parcel) {
  head_.starved.store(1, std::memory_order_relaxed);
  // Pairs with the fence in MessageReceiver::answer(): the target sees the mark, or this thread
  // sees the answer.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return is_answered(parcel.cursor, parcel.message.payload_bytes);
}

// Writes queued messages in order; returns whether that was all. Needs the turn.
bool MessageSender::write_queue() {
  while (has_queue()) {
    Parcel& parcel = front_to_write();
    while (!write(parcel.message, parcel.cursor, parcel.in_place)) {
      if (!parcel.cursor.asked || !await_answer(parcel)) return false;
    }
    pop(MOB_OK);
  }
  return true;
}

// No message may stay in the queue unnoticed once the turn is given up. This thread writes messages
// queued meanwhile, or the next thread with the turn does. Giving up the turn is also the fence
// between the writes and the checks that tell the target.
void MessageSender::write_queue_and_give_up(Turn& turn) {
  bool all = true;
  do {
    all = !has_queue() || write_queue();
    const bool tell = std::exchange(untold_, false);
    turn.give_up();
    if (tell) tell_target_after_fence();
  } while (all && has_queue() && turn.try_take());
}

bool MessageSender::pump() {
  const uint64_t unqueued = unqueued_.load(std::memory_order_relaxed);
  if (!has_queue()) return false;
  Turn turn(*this);
  if (!turn.try_take()) return false;
  if (broken_.load(std::memory_order_relaxed)) {
    give_queue_up();
    return true;
  }
  write_queue_and_give_up(turn);
  return unqueued_.load(std::memory_order_relaxed) != unqueued;
}

mob_status_t MessageSender::flush(Whose whose) {
  if (broken_.load(std::memory_order_relaxed)) return broken();
  // The ring of a process that has left is gone. One that was disconnected may leave before this
  // one does (mob_bridge_disconnect), which has flushed all before.
  if (link_ == nullptr && services_.peers.has_left(target_) &&
      written_.load(std::memory_order_acquire) <=
          known_completed_.load(std::memory_order_acquire)) {
    return MOB_OK;
  }
  TargetWatch watch(*this);
  const uint64_t queued = queued_.load(std::memory_order_seq_cst);
  mob_status_t status = services_.waiter.wait_until(
      [&] { return unqueued_.load(std::memory_order_acquire) >= queued; }, &watch);
  if (status == MOB_OK) {
    const uint64_t written =
        (whose == Whose::kProgram ? own_written_ : written_).load(std::memory_order_acquire);
    if (link_ != nullptr && head_.completed.load(std::memory_order_acquire) < written) {
      link_->probe();
    }
    // Acquire pairs with the release in MessageReceiver::finish(): the handlers' writes are
    // visible.
    status = services_.waiter.wait_until(
        [&] { return head_.completed.load(std::memory_order_acquire) >= written; }, &watch);
    if (status == MOB_OK && written > known_completed_.load(std::memory_order_relaxed)) {
      known_completed_.store(written, std::memory_order_release);
    }
  }
  if (status == MOB_ERR_PEER) give_up();
  return status != MOB_OK ? status : tell_unknown();
}

// Errors that a target on another host can only report afterwards; one flush returns them.
mob_status_t MessageSender::tell_unknown() {
  const uint64_t unknown = head_.unknown.load(std::memory_order_acquire);
  if (unknown == told_unknown_.load(std::memory_order_relaxed)) [[likely]] {
    return MOB_OK;
  }
  const uint64_t told = told_unknown_.exchange(unknown, std::memory_order_relaxed);
  const uint64_t missed = unknown / StreamHead::kUnknownCount - told / StreamHead::kUnknownCount;
  const uint64_t what = unknown % StreamHead::kUnknownCount;
  if (missed == 0) return MOB_OK;
  const char* const plural = missed == 1 ? "" : "s";
  if (what == StreamHead::kUnknownCounter) {
    return fail(MOB_ERR_HANDLE,
                "%llu message%s to rank %d named a handler or counter that does not exist, the "
                "last a target counter that is not live (freed before, or never made)",
                static_cast<unsigned long long>(missed), plural, target_);
  }
  return fail(MOB_ERR_HANDLE,
              "rank %d has no handler %u, and has dropped %llu message%s; register it there before "
              "anybody sends to it (mob_handler_register, then for example mob_barrier)",
              target_, static_cast<unsigned>(what), static_cast<unsigned long long>(missed),
              plural);
}

}  // namespace mobius::engine
