// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Active messages (include/mobius/message.h), for the engine and the API.
//
// A component that has another process do work registers a handler of its own in every process,
// with an identifier of InternalHandler, before its messages can come:
//
//   messages.register_internal(InternalHandler::kName, handle, this);
//
// Where such messages can come at any time, the component also starts the progress thread:
//
//   progress.require();
//
// send() blocks until local completion; code that must not wait does not call it. post() never
// blocks and copies what it cannot send at once. Handlers and any thread may call both. flush()
// waits until handlers have run for the messages of the program, or of everyone (Whose). Internal
// handlers get the same mob_message_t, answer with the same mob_delivery_t, and run in the same
// order and under the same rules as those of programs.

#include <mobius/message.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/settings.h"
#include "engine/common/sparse_array.h"
#include "engine/message/message_receiver.h"
#include "engine/message/message_sender.h"
#include "engine/message/message_services.h"
#include "engine/message/send_gate.h"
#include "engine/network/record_sink.h"
#include "engine/segment/message_wire.h"
#include "engine/segment/segment_layout.h"

namespace mobius::engine {

enum class InternalHandler : unsigned {
  kServe = kServeHandler,  // up to kHandlers - 1
  kServed,
  kRemote,    // remote/remote_objects.h
  kTeam,      // team/team_messages.h
  kPack,      // request/batch_server.h
  kPacked,    // scheduler/scheduler.h
  kClaiming,  // remote/remote_lock_batch.h
  kClaimed,
  kKeys,  // request/rkeys.h
};

struct Handler {
  mob_header_handler_t function;
  void* argument;
};

// The handlers of one process. Finding one takes no lock.
class HandlerTable {
 public:
  void set(unsigned id, Handler handler);
  const Handler* find(unsigned id) const {
    // Acquire pairs with the release in set().
    return id < kHandlers ? handlers_[id].load(std::memory_order_acquire) : nullptr;
  }

 private:
  std::array<std::atomic<const Handler*>, kHandlers> handlers_{};
  std::mutex mutex_;                                  // guards kept_
  std::vector<std::unique_ptr<const Handler>> kept_;  // replaced handlers, too: they may be running
};

class Messages final : public RecordSinks {
 public:
  explicit Messages(const MessageServices& services) : services_(services) {}

  // Called before all others. `ring_bytes` is MOBIUS_RING_BYTES; the gate and the counts outlive
  // this.
  void open(ProcessBlock& own, base::RingBytes ring_bytes, SendGate& gate,
            RemoteCounts& remote_counts);
  // Gives the inbox back. Called when nobody sends any more.
  void close();

  // Any thread; `id` is valid.
  void register_handler(unsigned id, mob_header_handler_t handler, void* argument);
  void register_internal(InternalHandler id, mob_header_handler_t handler, void* argument) {
    register_handler(static_cast<unsigned>(id), handler, argument);
  }

  // Sends a message of the program, without counters, to a local peer, if it can be sent at once.
  // Returns whether it was sent. Most are; the calls below send all others. Takes a rank of the job
  // and valid arguments.
  bool send_plain(mob_rank_t rank, unsigned id, const void* header, size_t header_bytes,
                  const void* payload, size_t payload_bytes);

  // As send_plain(), for a message without payload; kUnsent more often. After kNoRoom the caller
  // must call look_for_room() before anything else.
  BareSent send_bare(mob_rank_t rank, unsigned id, const void* header, size_t header_bytes);
  void look_for_room(mob_rank_t rank);

  // Each takes a rank of the job and valid arguments. `call` names the public function in error
  // texts.
  mob_status_t send(const char* call, mob_rank_t rank, const Outgoing& message);
  mob_status_t post(const char* call, mob_rank_t rank, const Outgoing& message);
  // Never blocks; the payload is the caller's until local completion. `*handle` becomes
  // MOB_HANDLE_DONE if the message is locally complete now; with a null `handle` the context keeps
  // the operation. After MOB_OK, the handle or the flush reports errors.
  mob_status_t start(const char* call, mob_rank_t rank, const Outgoing& message, uint64_t* handle);
  // Reads the pending LatePayloads posted to a rank of another host. Called before any other work
  // for that rank that may change those payloads, or let others change them.
  void read_late(mob_rank_t rank);
  // Ends the queued messages to a rank that died.
  void give_up(mob_rank_t rank);
  // Waits for the messages to one rank. All flushes are full fences, too.
  mob_status_t flush(mob_rank_t rank, Whose whose);
  // Waits for all ranks, then returns the first error.
  mob_status_t flush_all(Whose whose);
  // The same, and a message that a dead rank did not get is no error.
  mob_status_t flush_living(Whose whose);

  // Receives the messages of a link.
  std::unique_ptr<RecordSink> make_sink(StreamHead& incoming) override;
  // The handlers that run for messages.
  HandlerTable& handlers() { return handlers_; }

  // Counts a counter of a rank of another host.
  void count_elsewhere(mob_rank_t owner, mob_counter_t counter) {
    // If the owner is gone, nobody waits for the counter.
    static_cast<void>(remote_counts_->count(owner, counter));
  }

  // Bytes after which a pair changes to a larger ring.
  size_t widens_after() const { return width_->after_bytes; }
  // Makes a larger ring in the inbox of a local peer; false if there is no room for it.
  bool add_larger_ring(mob_rank_t rank, WireMoved* ring);
  // Makes the rings vacant whose senders are gone, so that others use them. By the thread that
  // receives.
  void look_for_vacant_rings();
  // The memory of a larger ring, or null if this process cannot map it now.
  void* larger_ring_at(uint64_t offset);

  // Whether the program has sent messages, so that its flushes wait for them. The engine's
  // components wait for their own messages themselves.
  bool sent_by_program() const { return sent_by_program_.load(std::memory_order_relaxed); }

  // A number that grows with each message once it is written or queued; some messages count twice.
  uint64_t sent();

  // Whether any message waits for room.
  bool has_queued() const { return senders_with_queue_.load(std::memory_order_relaxed) != 0; }

  // Whether serve() may find anything; always false in a process that does not use messages.
  bool in_use() const {
    return spans_hosts_ || inbox_->rings.load(std::memory_order_seq_cst) != 0 || has_queued();
  }

  // Runs the handlers of messages that have come, and sends queued messages. Returns whether there
  // were any. Any thread; one at a time does the work.
  bool serve(bool network) { return may_find() && serve_by_turns(network); }

  // rings() is the number of local peers that may send messages; may_find_in() tells whether any of
  // them has. In a job on one host with nothing queued, the latter is all of serve()'s check.
  uint32_t rings() const { return inbox_->rings.load(std::memory_order_relaxed); }
  bool may_find_in(uint32_t rings) const {
    // Acquire pairs with the release in attach().
    if (rings != looked_at_.load(std::memory_order_acquire)) return true;
    for (uint32_t i = 0; i < rings; ++i) {
      if (polled_[i]->may_find()) return true;
    }
    return false;
  }
  // serve() after that check.
  bool serve_by_turns(bool network);

 private:
  enum Serving : uint32_t { kNobody, kOne, kOneAndAnotherAsked };

  // Whether there may be anything to serve. Does not slow down other threads that check or serve.
  bool may_find() const { return spans_hosts_ || has_queued() || may_find_in(rings()); }

  bool puts_wait() const { return puts_wait_->load(std::memory_order_relaxed); }
  void issue_puts() {
    if (puts_wait()) gate_->issue_puts();
  }
  mob_status_t check_counters(const char* call, mob_rank_t rank, const mob_notify_t& notify);
  mob_status_t prepare(const char* call, mob_rank_t rank, const Outgoing& message,
                       MessageSender** sender);
  mob_status_t find_sender(const char* call, mob_rank_t rank, unsigned id, MessageSender** sender);
  mob_status_t deliver(const char* call, mob_rank_t rank, const Outgoing& message,
                       mob_status_t (MessageSender::*how)(const Outgoing&));
  mob_status_t flush_one(mob_rank_t rank, Whose whose);
  mob_status_t flush_each(Whose whose, bool tells_of_dead);
  void count(mob_rank_t rank, const Outgoing& message, mob_status_t status);
  mob_status_t connect(mob_rank_t rank);
  mob_status_t reserve_ring(std::atomic<uint32_t>& chunk, size_t place, size_t bytes,
                            uint64_t* offset);
  mob_status_t add_ring(Inbox& inbox, uint32_t index, MessageRing** ring);
  mob_status_t take_ring(mob_rank_t rank, std::unique_ptr<MessageSender>* made);
  mob_status_t take_vacant_ring(mob_rank_t rank, Inbox& inbox,
                                std::unique_ptr<MessageSender>* made);
  bool add_larger_ring(Inbox::LargerRings& rings, const RingSize& width, WireMoved* ring);
  MessageRing* ring_at(const Inbox& inbox, uint32_t index) const;
  bool take_serving();
  void end_serving(bool found, ProcessBlock::Doorbell* to_ring);
  bool serve_once(bool network, ProcessBlock::Doorbell** to_ring);
  bool serve_written();
  void attach(uint32_t rings);

  const MessageServices services_;
  Inbox* inbox_ = nullptr;
  ProcessBlock::Doorbell* doorbell_ = nullptr;  // of this process
  bool spans_hosts_ = false;
  const std::atomic<bool>* puts_wait_ = nullptr;  // of gate_
  SendGate* gate_ = nullptr;
  RemoteCounts* remote_counts_ = nullptr;
  HandlerTable handlers_;

  // Sending.
  std::mutex connect_mutex_;  // guards making senders
  SparseArray<std::atomic<MessageSender*>> by_rank_;
  std::vector<std::unique_ptr<MessageSender>> senders_;
  std::atomic<uint32_t> senders_with_queue_ = 0;
  std::atomic<bool> sent_by_program_ = false;
  std::atomic<uint64_t> sent_ = 0;      // see sent()
  const RingSize* width_ = &kWideRing;  // the size of larger rings by the settings

  // Receiving.
  std::atomic<uint32_t> serving_ = kNobody;  // guards all below
  std::vector<std::unique_ptr<MessageReceiver>> receivers_;
  // The receivers of the first rings, for may_find(). If there are more rings, may_find() is always
  // true.
  std::array<MessageReceiver*, kPolledRings> polled_{};
  std::atomic<uint32_t> looked_at_ = 0;
};

}  // namespace mobius::engine
