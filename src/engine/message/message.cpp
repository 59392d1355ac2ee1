// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message/message.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/message/receive_inline.h"
#include "engine/network/network.h"
#include "engine/progress/completion.h"
#include "engine/progress/counters.h"
#include "engine/progress/progress.h"
#include "engine/progress/request_activity.h"
#include "engine/segment/locks/shared_lock.h"

namespace mobius::engine {

using base::fail;

void HandlerTable::set(unsigned id, Handler handler) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::make_unique<const Handler>(handler));
  // Release pairs with the acquire in find().
  handlers_[id].store(kept_.back().get(), std::memory_order_release);
}

namespace {

// Receives the records of one link.
class LinkReceiver final : public RecordSink {
 public:
  LinkReceiver(const MessageServices& services, const HandlerTable& handlers, StreamHead& incoming)
      : receiver_(services, handlers, incoming) {}
  void accept(os::RingRecord record) override { receiver_.accept(record); }
  size_t bytes_left() const override { return receiver_.bytes_left(); }

 private:
  MessageReceiver receiver_;
};

}  // namespace

std::unique_ptr<RecordSink> Messages::make_sink(StreamHead& incoming) {
  return std::make_unique<LinkReceiver>(services_, handlers_, incoming);
}

void Messages::open(ProcessBlock& own, base::RingBytes ring_bytes, SendGate& gate,
                    RemoteCounts& remote_counts) {
  gate_ = &gate;
  puts_wait_ = &gate.puts_wait();
  remote_counts_ = &remote_counts;
  inbox_ = &own.inbox;
  doorbell_ = &own.doorbell;
  spans_hosts_ = services_.peers.job().hosts() > 1;
  width_ = &wanted_ring_size(ring_bytes);
  by_rank_ = SparseArray<std::atomic<MessageSender*>>(static_cast<size_t>(services_.peers.most()));
}

void Messages::close() {
  if (inbox_ == nullptr) return;
  looked_at_.store(0, std::memory_order_relaxed);
  receivers_.clear();
  if (sent_by_program_.load(std::memory_order_relaxed)) Completion::flush_messages_too(false);
  senders_.clear();
  const auto give_back = [&](uint32_t chunk) {
    services_.segment.release_memory(uint64_t{chunk} << kChunkShift, kChunkBytes);
    services_.segment.chunks().release(chunk, 1);
  };
  inbox_->vacant.store(0, std::memory_order_relaxed);
  const uint32_t rings = inbox_->rings.exchange(0, std::memory_order_relaxed);
  for (uint32_t index = 0; index < rings; index += Inbox::kRingsPerChunk) {
    const uint32_t chunk = inbox_->chunks[index / Inbox::kRingsPerChunk].load() - 1;
    give_back(chunk);
  }
  const auto give_wider_back = [&](Inbox::LargerRings& wider, const RingSize& width) {
    const uint32_t made = wider.made.exchange(0, std::memory_order_relaxed);
    for (uint32_t index = 0; index < made; index += width.per_chunk) {
      give_back(wider.chunks[index / width.per_chunk].load() - 1);
    }
  };
  give_wider_back(inbox_->wide, kWideRing);
  give_wider_back(inbox_->large, kLargeRing);
}

void Messages::register_handler(unsigned id, mob_header_handler_t handler, void* argument) {
  handlers_.set(id, {handler, argument});
  // Release pairs with the acquire in find_sender(): a process that sees the bit sends to a
  // registered handler.
  inbox_->handlers[id / 64].fetch_or(uint64_t{1} << (id % 64), std::memory_order_release);
}

MessageRing* Messages::ring_at(const Inbox& inbox, uint32_t index) const {
  const uint32_t chunk = inbox.chunks[index / Inbox::kRingsPerChunk].load() - 1;
  const uint64_t offset =
      (uint64_t{chunk} << kChunkShift) + index % Inbox::kRingsPerChunk * kMessageRingBytes;
  return static_cast<MessageRing*>(services_.segment.local_address(offset));
}

// Reserves memory for a ring in a chunk of an inbox. The caller holds the inbox's lock.
mob_status_t Messages::reserve_ring(std::atomic<uint32_t>& chunk, size_t place, size_t bytes,
                                    uint64_t* offset) {
  if (chunk.load() == 0) {
    uint64_t first = 0;
    if (const mob_status_t status = services_.segment.chunks().claim(1, &first)) return status;
    chunk.store(static_cast<uint32_t>(first + 1));
  }
  const uint64_t start = uint64_t{chunk.load() - 1} << kChunkShift;
  *offset = start + place * bytes;
  const mob_status_t status = services_.segment.reserve_memory(*offset, bytes);
  return status == MOB_OK ? services_.segment.window().allow(start, 1) : status;
}

// Makes the ring at `index` of an inbox. The caller holds the inbox's lock.
mob_status_t Messages::add_ring(Inbox& inbox, uint32_t index, MessageRing** ring) {
  uint64_t offset = 0;
  if (const mob_status_t status =
          reserve_ring(inbox.chunks[index / Inbox::kRingsPerChunk], index % Inbox::kRingsPerChunk,
                       kMessageRingBytes, &offset)) {
    return status;
  }
  *ring = ring_at(inbox, index);
  (*ring)->sender = services_.peers.rank();
  return MOB_OK;
}

bool Messages::add_larger_ring(mob_rank_t rank, WireMoved* ring) {
  Inbox& inbox = services_.segment.process(services_.peers.host_index(rank)).inbox;
  const LockGuard inbox_lock(services_.peers, inbox.lock);
  return (width_ == &kLargeRing && add_larger_ring(inbox.large, kLargeRing, ring)) ||
         add_larger_ring(inbox.wide, kWideRing, ring);
}

// The caller holds the inbox's lock.
bool Messages::add_larger_ring(Inbox::LargerRings& rings, const RingSize& width, WireMoved* ring) {
  const uint32_t index = rings.made.load(std::memory_order_relaxed);
  if (index == width.most) return false;
  if (reserve_ring(rings.chunks[index / width.per_chunk], index % width.per_chunk, width.bytes,
                   &ring->offset) != MOB_OK) {
    return false;
  }
  ring->capacity = width.capacity;
  rings.made.store(index + 1, std::memory_order_relaxed);
  return true;
}

void* Messages::larger_ring_at(uint64_t offset) {
  if (services_.segment.window().allow(offset >> kChunkShift << kChunkShift, 1) != MOB_OK)
    return nullptr;
  return services_.segment.local_address(offset);
}

// Makes a sender with a ring in the inbox of a local peer.
mob_status_t Messages::take_ring(mob_rank_t rank, std::unique_ptr<MessageSender>* made) {
  Inbox& inbox = services_.segment.process(services_.peers.host_index(rank)).inbox;
  const LockGuard inbox_lock(services_.peers, inbox.lock);
  if (inbox.vacant.load(std::memory_order_relaxed) != 0) return take_vacant_ring(rank, inbox, made);
  const uint32_t index = inbox.rings.load(std::memory_order_relaxed);
  if (index == kMostSenders) {
    return fail(MOB_ERR_MEMORY, "rank %d has messages of %d local peers already", rank,
                kMostSenders);
  }
  MessageRing* ring = nullptr;
  if (const mob_status_t status = add_ring(inbox, index, &ring)) return status;
  *made = std::make_unique<MessageSender>(services_, rank, *ring, index, senders_with_queue_);
  // Release pairs with the acquire in attach(): the ring is visible.
  inbox.rings.store(index + 1, std::memory_order_release);
  return MOB_OK;
}

// The same with the first vacant ring. The caller holds the inbox's lock.
mob_status_t Messages::take_vacant_ring(mob_rank_t rank, Inbox& inbox,
                                        std::unique_ptr<MessageSender>* made) {
  const uint32_t index = inbox.vacant.load(std::memory_order_relaxed) - 1;
  const uint64_t chunk = inbox.chunks[index / Inbox::kRingsPerChunk].load() - 1;
  if (const mob_status_t status = services_.segment.window().allow(chunk << kChunkShift, 1)) {
    return status;
  }
  MessageRing& ring = *ring_at(inbox, index);
  *made = std::make_unique<MessageSender>(services_, rank, ring, index, senders_with_queue_);
  ring.sender = services_.peers.rank();
  inbox.vacant.store(ring.next_vacant, std::memory_order_relaxed);
  (*made)->announce();
  return MOB_OK;
}

void Messages::look_for_vacant_rings() {
  const Peers& peers = services_.peers;
  if (peers.bound() == peers.size()) return;  // nobody came later, so nobody leaves before the end
  for (uint32_t index = 0; index < receivers_.size(); ++index) {
    if (!receivers_[index]->is_done()) continue;
    const LockGuard inbox_lock(services_.peers, inbox_->lock);
    MessageRing& ring = *ring_at(*inbox_, index);
    receivers_[index]->vacate(ring);
    ring.next_vacant = inbox_->vacant.load(std::memory_order_relaxed);
    inbox_->vacant.store(index + 1, std::memory_order_relaxed);
  }
}

mob_status_t Messages::connect(mob_rank_t rank) {
  const std::lock_guard lock(connect_mutex_);
  if (by_rank_[static_cast<size_t>(rank)].load(std::memory_order_relaxed) != nullptr) return MOB_OK;
  if (!services_.peers.is_here(rank)) {
    Link* link = nullptr;
    if (const mob_status_t status = services_.network.link(rank, &link)) return status;
    senders_.push_back(
        std::make_unique<MessageSender>(services_, rank, *link, senders_with_queue_));
    by_rank_[static_cast<size_t>(rank)].store(senders_.back().get(), std::memory_order_release);
    return MOB_OK;
  }
  if (senders_.size() == senders_.capacity()) senders_.reserve(2 * senders_.size() + 1);
  std::unique_ptr<MessageSender> made;
  if (const mob_status_t status = take_ring(rank, &made)) return status;
  senders_.push_back(std::move(made));
  by_rank_[static_cast<size_t>(rank)].store(senders_.back().get(), std::memory_order_release);
  return MOB_OK;
}

// Finds or makes the sender to a rank, which must have registered `id`.
mob_status_t Messages::find_sender(const char* call, mob_rank_t rank, unsigned id,
                                   MessageSender** sender) {
  const bool here = services_.peers.is_here(rank);
  // A target on another host reports a missing handler itself.
  const Inbox& inbox =
      here ? services_.segment.process(services_.peers.host_index(rank)).inbox : *inbox_;
  if (here && !inbox.has_handler(id)) {
    return fail(MOB_ERR_HANDLE,
                "%s: rank %d has no handler %u; register it there before anybody sends to it "
                "(mob_handler_register, then for example mob_barrier)",
                call, rank, id);
  }
  std::atomic<MessageSender*>& known = by_rank_[static_cast<size_t>(rank)];
  if (known.load(std::memory_order_acquire) == nullptr) [[unlikely]] {
    if (const mob_status_t status = connect(rank)) return status;
  }
  *sender = known.load(std::memory_order_acquire);
  return MOB_OK;
}

mob_status_t Messages::check_counters(const char* call, mob_rank_t rank,
                                      const mob_notify_t& notify) {
  const auto is_live = [&](mob_rank_t owner, mob_counter_t counter) {
    return counter == nullptr || !services_.peers.is_here(owner) ||
           services_.counters.is_elsewhere(owner, counter) ||
           services_.counters.find(call, owner, counter) != nullptr;
  };
  const bool live = is_live(services_.peers.rank(), notify.origin_counter) &&
                    is_live(rank, notify.target_counter) &&
                    is_live(services_.peers.rank(), notify.completion_counter);
  return live ? MOB_OK : MOB_ERR_HANDLE;
}

mob_status_t Messages::send(const char* call, mob_rank_t rank, const Outgoing& message) {
  return deliver(call, rank, message, in_handler ? &MessageSender::post : &MessageSender::send);
}

mob_status_t Messages::post(const char* call, mob_rank_t rank, const Outgoing& message) {
  return deliver(call, rank, message, &MessageSender::post);
}

mob_status_t Messages::prepare(const char* call, mob_rank_t rank, const Outgoing& message,
                               MessageSender** sender) {
  // Operations that the program started before go first.
  if (message.id < kPublicHandlers) {
    if (!services_.peers.is_here(rank)) gate_->issue_to(call, rank);
    issue_puts();
  }
  const mob_notify_t& notify = message.notify;
  if (notify.origin_counter != nullptr || notify.target_counter != nullptr ||
      notify.completion_counter != nullptr) {
    if (const mob_status_t status = check_counters(call, rank, notify)) return status;
  }
  if (const mob_status_t status = find_sender(call, rank, message.id, sender)) return status;
  if (message.id < kPublicHandlers && !sent_by_program() &&
      !sent_by_program_.exchange(true, std::memory_order_relaxed)) {
    Completion::flush_messages_too(true);
  }
  if (message.id < kPublicHandlers && !services_.instrumentation.counts_messages()) {
    (*sender)->send_bare_from_now();
  }
  return MOB_OK;
}

mob_status_t Messages::start(const char* call, mob_rank_t rank, const Outgoing& message,
                             uint64_t* handle) {
  MessageSender* sender = nullptr;
  if (const mob_status_t status = prepare(call, rank, message, &sender)) return status;
  if (sender->send_now(message)) {
    count(rank, message, MOB_OK);
    if (!sender->is_here()) sent_.fetch_add(1, std::memory_order_release);
    if (message.notify.origin_counter != nullptr) {
      services_.counters.count(services_.peers.rank(),
                               Counters::own(message.notify.origin_counter));
    }
    if (handle != nullptr) *handle = MOB_HANDLE_DONE;
    return MOB_OK;
  }
  // The progress thread has to send queued messages.
  if (const mob_status_t status = services_.progress.require()) return status;
  mob_transfer_t transfer{};
  transfer.rank = rank;
  transfer.origin_counter = message.notify.origin_counter;
  Pending* pending = services_.completion.start(transfer, handle);
  if (pending == nullptr) return MOB_ERR_MEMORY;
  count(rank, message, MOB_OK);
  sender->start(message, *pending);
  sent_.fetch_add(1, std::memory_order_release);
  return MOB_OK;
}

mob_status_t Messages::deliver(const char* call, mob_rank_t rank, const Outgoing& message,
                               mob_status_t (MessageSender::*how)(const Outgoing&)) {
  MessageSender* sender = nullptr;
  if (const mob_status_t status = prepare(call, rank, message, &sender)) return status;
  const bool now = sender->send_now(message);
  const mob_status_t status = now ? MOB_OK : (sender->*how)(message);
  count(rank, message, status);
  // The messages with which teams of several hosts meet at the end of the job start nothing.
  const bool counted = now && sender->is_here();
  if (!counted && message.id != static_cast<unsigned>(InternalHandler::kTeam)) {
    sent_.fetch_add(1, std::memory_order_release);
  }
  if (status == MOB_OK && message.notify.origin_counter != nullptr) {
    services_.counters.count(services_.peers.rank(), Counters::own(message.notify.origin_counter));
  }
  return status;
}

void Messages::count(mob_rank_t rank, const Outgoing& message, mob_status_t status) {
  if (message.id < kPublicHandlers) {
    services_.instrumentation.count_message(rank, message.payload_bytes, status);
  }
}

void Messages::look_for_room(mob_rank_t rank) {
  by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire)->look_for_room();
}

void Messages::read_late(mob_rank_t rank) {
  // Acquire pairs with the release in connect().
  MessageSender* sender = by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  if (sender != nullptr && !sender->is_here()) sender->read_late();
}

void Messages::give_up(mob_rank_t rank) {
  MessageSender* sender = by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  if (sender != nullptr) sender->give_up();
}

mob_status_t Messages::flush_one(mob_rank_t rank, Whose whose) {
  MessageSender* sender = by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  return sender != nullptr ? sender->flush(whose) : MOB_OK;
}

mob_status_t Messages::flush(mob_rank_t rank, Whose whose) {
  const mob_status_t status = flush_one(rank, whose);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return status;
}

mob_status_t Messages::flush_each(Whose whose, bool tells_of_dead) {
  mob_status_t first = MOB_OK;
  for (mob_rank_t rank = 0; rank < services_.peers.bound(); ++rank) {
    const mob_status_t status = flush_one(rank, whose);
    if (first == MOB_OK && (tells_of_dead || status != MOB_ERR_PEER)) first = status;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return first;
}

mob_status_t Messages::flush_all(Whose whose) { return flush_each(whose, true); }

mob_status_t Messages::flush_living(Whose whose) { return flush_each(whose, false); }

uint64_t Messages::sent() {
  uint64_t sent = sent_.load(std::memory_order_acquire);
  const std::lock_guard lock(connect_mutex_);
  for (const auto& sender : senders_) {
    if (sender->is_here()) sent += sender->written();
  }
  return sent;
}

// Gives serving_ up and wakes those that have to know.
[[gnu::always_inline]] inline void Messages::end_serving(bool found,
                                                         ProcessBlock::Doorbell* to_ring) {
  // Also the fence before the checks for sleepers.
  const uint32_t asked = serving_.exchange(kNobody, std::memory_order_seq_cst);
  if (to_ring != nullptr) Waiter::ring_after_fence(*to_ring);
  // A thread that asked may sleep by now, and may have come too late for the rings that were read
  // first. Threads that wait for the handlers' effects check again.
  if (asked == kOneAndAnotherAsked) [[unlikely]] {
    Progress::wake_after_fence(*doorbell_);
  } else if (found) {
    Waiter::ring_after_fence(*doorbell_);
  }
}

// `*to_ring` becomes the doorbell of the last sender, which the caller still has to ring; null if
// there is none, or after an exception. Mostly only one ring has records, and its fence can be
// shared.
[[gnu::always_inline]] inline bool Messages::serve_once(bool network,
                                                        ProcessBlock::Doorbell** to_ring) {
  bool found = false;
  const uint32_t rings = inbox_->rings.load(std::memory_order_acquire);
  if (rings != looked_at_.load(std::memory_order_relaxed)) [[unlikely]] {
    attach(rings);
  }
  bool came = false;
  if (spans_hosts_ && services_.network.is_open()) {
    came = network ? services_.network.poll() : services_.network.settle(false);
  }
  bool more = false;
  const uint32_t polled = looked_at_.load(std::memory_order_relaxed);
  // Ring a sender before other handlers run, which may take long.
  const auto ring_before = [&] {
    if (*to_ring == nullptr) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Waiter::ring_after_fence(*std::exchange(*to_ring, nullptr));
  };
  for (uint32_t i = 0; i < polled; ++i) {
    MessageReceiver& receiver = *polled_[i];
    if (*to_ring != nullptr) [[unlikely]] {
      if (!receiver.may_find()) continue;
      ring_before();
    }
    if (!receiver.drain(&more)) continue;
    *to_ring = receiver.doorbell();
    found = true;
  }
  if (rings > kPolledRings) [[unlikely]] {
    ring_before();
    found |= serve_written();
  }
  if (found) services_.request_activity.note();
  found |= came;
  if (has_queued()) [[unlikely]] {
    ring_before();
    const std::lock_guard lock(connect_mutex_);
    for (const auto& sender : senders_) found |= sender->pump();
  }
  return found;
}

// Takes the turn to serve if it is free. Otherwise asks the thread that has it to look again
// afterwards, or to have others do so.
[[gnu::noinline]] bool Messages::take_serving() {
  uint32_t serving = kNobody;
  // Acquire pairs with the release in end_serving(): the previous thread's changes to the receivers
  // are visible.
  while (!serving_.compare_exchange_weak(serving, kOne, std::memory_order_acquire)) {
    if (serving == kNobody) continue;
    uint32_t one = kOne;
    if (serving == kOneAndAnotherAsked ||
        serving_.compare_exchange_strong(one, kOneAndAnotherAsked, std::memory_order_relaxed)) {
      return false;
    }
    serving = kNobody;
  }
  return true;
}

bool Messages::serve_by_turns(bool network) {
  if (in_handler) return false;
  uint32_t nobody = kNobody;
  // Acquire as in take_serving().
  if (!serving_.compare_exchange_strong(nobody, kOne, std::memory_order_acquire)) [[unlikely]] {
    if (!take_serving()) return false;
  }
  try {
    ProcessBlock::Doorbell* to_ring = nullptr;
    const bool found = serve_once(network, &to_ring);
    end_serving(found, to_ring);
    return found;
  } catch (...) {
    end_serving(true, nullptr);
    throw;
  }
}

// Serves the rings whose bit is set.
bool Messages::serve_written() {
  bool found = false;
  for (size_t base = 0; base < receivers_.size(); base += 64) {
    std::atomic<uint64_t>& word = inbox_->written[base / 64];
    if (word.load(std::memory_order_relaxed) == 0) continue;
    // A full fence: pairs with the one in MessageSender::tell_target(). The loop below finds all
    // records that were written before the bit was set.
    for (uint64_t bits = word.exchange(0, std::memory_order_seq_cst); bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<size_t>(std::countr_zero(bits));
      bool more = false;
      if (base + bit < receivers_.size() && receivers_[base + bit]->drain(&more)) {
        services_.waiter.ring(receivers_[base + bit]->source());
        found = true;
      }
      if (more || base + bit >= receivers_.size()) {
        word.fetch_or(uint64_t{1} << bit, std::memory_order_relaxed);
      }
    }
  }
  return found;
}

void Messages::attach(uint32_t rings) {
  for (auto index = static_cast<uint32_t>(receivers_.size()); index < rings; ++index) {
    const uint32_t chunk = inbox_->chunks[index / Inbox::kRingsPerChunk].load() - 1;
    // Without the memory nothing can be read now; the next call tries again.
    if (services_.segment.window().allow(uint64_t{chunk} << kChunkShift, 1) != MOB_OK) return;
    try {
      receivers_.push_back(
          std::make_unique<MessageReceiver>(services_, handlers_, *ring_at(*inbox_, index)));
    } catch (const std::bad_alloc&) {
      static std::atomic<bool> told = false;
      if (!told.exchange(true)) {
        base::log(base::LogLevel::kWarn,
                  "no memory to read messages of local peers; they wait until there is some");
      }
      return;
    }
    if (index < kPolledRings) {
      polled_[index] = receivers_.back().get();
      looked_at_.store(index + 1, std::memory_order_release);
    }
  }
  look_for_vacant_rings();
}

}  // namespace mobius::engine
